/* SPDX-License-Identifier: Apache-2.0 */
/*
 * root.c - The root filesystem of a cell, from nothing, by system calls only.
 *
 * Theory of operation. One tmpfs is the writable layer: it has the disk and inode limits, it is
 * charged to the cell's memory, and it disappears with the mount namespace, so there is nothing on
 * the host to clean up after a crash. For the host image that tmpfs *is* the root, with a view of
 * the machine's /usr in it (root_host.c). For any other image an overlay of its directory, or of
 * its layers (lowers, read-only), and the writable layer (upper) is the root.
 *
 * Every mount is made detached, restricted while nobody can see it, and only then moved into
 * place, so there is no moment in which it is there without its flags. Every target is resolved
 * below the new root without following links: a hostile image cannot lead a mount elsewhere.
 *
 * Runs in the child, after clone: see stage.h. The paths on the host that are named here are
 * constants.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "cell/plan.h"
#include "cell/spec.h"
#include "cell/stage.h"

/* Any directory that surely exists; the layer covers it until the pivot removes everything. */
#define ATTACH_POINT "/proc"

/* ---- images of directories ---------------------------------------------------------------- */

/* Find the client's object again by path, and prove that it is the one that the client opened. */
static int reopen(const struct plan_mount *m, uint64_t attrs)
{
	struct stat st;
	_fd_ int tree = mnt_of_host(m->src, attrs);

	if (tree < 0)
		return -1;
	if (fstat(tree, &st) < 0)
		return -1;
	if (st.st_dev != m->dev || st.st_ino != m->ino) {
		errno = ESTALE;
		return -1;
	}
	return TAKE_FD(tree);
}

/*
 * The lowers get mount points of their own, with names of two letters relative to the current
 * directory, so that even the longest option "lowerdir" is shorter than the 256 bytes that the
 * Linux kernel takes. Newer versions have other ways (lowerdir+, descriptors); this one works in
 * all.
 */
static int place_lowers(const struct plan *p, int layer)
{
	_fd_ int dir = mnt_ensure_dir(layer, "lower");

	for (uint32_t i = 0; i < p->n_layers; i++) {
		const struct plan_mount *m = &p->layers[i];
		const char name[3] = { p->lowers[3 * i], p->lowers[3 * i + 1] };
		_fd_ int lower = m->fd < 0 ? reopen(m, MNT_SAFE | MOUNT_ATTR_RDONLY) : dup(m->fd);

		if (lower < 0 || mnt_place(lower, dir, name, true) < 0)
			stage_fail(p, STAGE_LOWER, i);
	}
	return fchdir(dir);
}

/*
 * The directories that every cell has, whatever the image brings. A directory of the image keeps
 * its mode; the agent's three become the agent's.
 */
static void make_needed(const struct plan *p, int root)
{
	static const struct {
		const char *path;
		mode_t mode;
		bool agent; /* belongs to the agent instead of root */
	} needed[] = {
		{ "tmp", 01777, false },      { "workspace", 0755, true }, { "home", 0755, false },
		{ "home/agent", 0755, true }, { "dev", 0755, false },      { "proc", 0555, false },
		{ "sys", 0555, false },       { "projects", 0755, true },
	};

	for (uint32_t i = 0; i < ARRAY_SIZE(needed); i++) {
		/* A zygote has no agent, and no right to copy up the image users' files. */
		if (p->zygote && needed[i].agent)
			continue;
		_fd_ int was = mnt_beneath(root, needed[i].path, O_PATH | O_DIRECTORY);

		if (was < 0)
			fd_close(mnt_ensure_dir(root, needed[i].path));
		_fd_ int dir = mnt_beneath(root, needed[i].path, O_RDONLY | O_DIRECTORY);

		if (dir < 0 || (was < 0 && fchmod(dir, needed[i].mode) < 0) ||
		    (needed[i].agent && p->ids.ranged && fchown(dir, CELL_UID, CELL_GID) < 0))
			stage_fail(p, STAGE_TREE, i);
	}
}

/* Lowers: the image. Upper and work: directories of the layer. The merged root is made detached. */
static int overlay_root(const struct plan *p, int layer)
{
	static const char *const dirs[] = { "upper", "work", "root" };

	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		if (mkdirat(layer, dirs[i], 0755) < 0)
			stage_fail(p, STAGE_OVERLAY, 1);
	if (place_lowers(p, layer) < 0)
		stage_fail(p, STAGE_OVERLAY, 2);
	/*
	 * In the upper before the overlay is made: they cover files or links of the image. Images
	 * come without hosts, because every engine writes it.
	 */
	if (mkdirat(layer, "upper/etc", 0755) < 0 ||
	    root_put_file(layer, "upper/etc/hosts", ROOT_HOSTS) < 0 ||
	    root_put_file(layer, "upper/etc/resolv.conf", ROOT_RESOLV_CONF) < 0 ||
	    root_put_file(layer, "upper/" CELL_NODE_PRELOAD, root_node_preload()) < 0)
		stage_fail(p, STAGE_ETC, 0);

	/* Redirects and copied metadata stay off: a layer could otherwise lead the mount astray. */
	const struct mnt_option options[] = {
		{ "lowerdir", p->lowers }, { "upperdir", "../upper" },
		{ "workdir", "../work" },  { "redirect_dir", "nofollow" },
		{ "index", "off" },        { "metacopy", "off" },
		{ "userxattr", NULL },     { NULL, NULL },
	};
	_fd_ int merged = mnt_make("overlay", options, MNT_SAFE);

	if (merged < 0 || mnt_place(merged, layer, "root", true) < 0)
		stage_fail(p, STAGE_OVERLAY, 3);
	make_needed(p, merged);
	return TAKE_FD(merged);
}

/* ---- the device nodes ----------------------------------------------------------------------- */

/*
 * A lock or a watch on /dev/null belongs to its inode: on the host's own, cells would meet each
 * other and the host. So each cell has nodes of its own, on a small tmpfs. A node works only on a
 * filesystem that a process with CAP_MKNOD made in the host's user namespace: the warden of root
 * makes it, detached, and the child binds the nodes on it. Without that right the host's nodes are
 * bound; the receipt's mounts show which was done.
 */
#define NODE_ATTRS (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC)

/* Numbers from Linux' devices.txt: part of its interface, and the same everywhere. */
static const struct node {
	const char *name, *host;
	unsigned int major, minor;
} nodes[] = {
	{ "null", "/dev/null", 1, 3 },       { "zero", "/dev/zero", 1, 5 },
	{ "full", "/dev/full", 1, 7 },       { "random", "/dev/random", 1, 8 },
	{ "urandom", "/dev/urandom", 1, 9 }, { "tty", "/dev/tty", 5, 0 },
};

int nodes_make(void)
{
	static const struct mnt_option options[] = {
		{ "size", "4k" }, { "nr_inodes", "8" }, { "mode", "0755" }, { NULL, NULL }
	};
	_fd_ int dir = mnt_make("tmpfs", options, NODE_ATTRS);

	if (dir < 0)
		return -1;
	mode_t mask = umask(0);
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(nodes); i++)
		r = mknodat(dir, nodes[i].name, S_IFCHR | 0666,
			    makedev(nodes[i].major, nodes[i].minor));
	(void)umask(mask);
	return r < 0 ? -1 : TAKE_FD(dir);
}

/* Without nodes of our own: the host's, restricted before it is there. */
static int place_host_node(int dev, const struct node *n)
{
	_fd_ int tree = mnt_of_host(n->host, NODE_ATTRS);

	return tree < 0 ? -1 : mnt_place(tree, dev, n->name, false);
}

/* Into @dev, which is a directory of ours. */
static void nodes_place(const struct plan *p, int dev)
{
	/* Parts can be bound only of an attached mount. It covers the host's, and goes with it. */
	if (p->nodes_fd >= 0 && (mnt_over_host(p->nodes_fd) < 0 || fchdir(dev) < 0))
		stage_fail(p, STAGE_DEV, 104);
	for (uint32_t i = 0; i < ARRAY_SIZE(nodes); i++) {
		int r = p->nodes_fd < 0 ? place_host_node(dev, &nodes[i]) :
					  mnt_bind(nodes[i].host, nodes[i].name, false);

		if (r < 0)
			stage_fail(p, STAGE_DEV, i);
	}
}

/* ---- the files of /proc that a cell does not see -------------------------------------------- */

/*
 * A new instance of /proc shows the processes and names of the cell's own namespaces, and beside
 * them files about the whole machine. Of these a cell keeps the ones that programs need
 * (docs/threat-model.md lists them); the others are covered: /dev/null over a file, the empty /sys
 * over a directory. Which files a cell can read is compared with that list by
 * tests/hostile/test_proc.py, so a file of a newer kernel is noticed before anyone relies on it.
 *
 * Only the first cover of each kind is made and restricted step by step. The others are binds of
 * it, one system call each, and have its flags. Paths below our own /proc are the kernel's, and no
 * links. Files that this Linux kernel does not have are skipped.
 */
static const char *const masked_files[] = {
	/* Of other cells and of the host's processes. */
	"locks", "keys", "key-users", "timer_list", "sched_debug", "latency_stats", "schedstat",
	"cgroups", "sys/fs/file-nr", "sys/fs/inode-nr", "sys/fs/inode-state", "sys/fs/dentry-state",
	"sys/fs/aio-nr", "sys/kernel/pty/nr",
	/* Of the machine's memory, disks and devices. */
	"buddyinfo", "zoneinfo", "vmstat", "swaps", "diskstats", "partitions", "mdstat",
	"interrupts", "softirqs", "iomem", "ioports",
	/* Of its kernel, or acting on it. */
	"bootconfig", "cmdline", "config.gz", "crypto", "kallsyms", "kcore", "kmsg", "modules",
	"sysrq-trigger"
};
static const char *const masked_dirs[] = { "pressure", "sys/fs/quota", "acpi", "asound", "bus",
					   "driver",   "fs",           "irq",  "scsi",   "tty" };

/* The first of its kind: restricted before it is there. */
static int cover(int root, const char *path, const char *by)
{
	_fd_ int target = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (target < 0)
		return -1;
	_fd_ int empty = open_tree(root, by, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (empty < 0 ||
	    mnt_restrict(empty, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC) < 0)
		return -1;
	return move_mount(empty, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
}

/* @by: below @root; it is there already. */
static void mask(const struct plan *p, int root, const char *const *paths, uint32_t n,
		 const char *by)
{
	const char *first = NULL;

	for (uint32_t i = 0; i < n; i++) {
		int r = first ? mount(first, paths[i], NULL, MS_BIND, NULL) :
				cover(root, paths[i], by);

		if (r < 0 && errno == ENOENT)
			continue;
		if (r < 0)
			stage_fail(p, STAGE_MASK, i);
		if (!first)
			first = paths[i];
	}
}

static void mask_proc(const struct plan *p, int root)
{
	_fd_ int proc = mnt_beneath(root, "proc", O_PATH | O_DIRECTORY);

	if (proc < 0 || fchdir(proc) < 0)
		stage_fail(p, STAGE_MASK, 100);
	mask(p, root, masked_files, ARRAY_SIZE(masked_files), "dev/null");
	mask(p, root, masked_dirs, ARRAY_SIZE(masked_dirs), "sys");
}

/* ---- /dev ---------------------------------------------------------------------------------- */

static void build_dev(const struct plan *p, int root)
{
	static const struct {
		const char *target, *name;
	} links[] = {
		{ "pts/ptmx", "ptmx" },          { "/proc/self/fd", "fd" },
		{ "/proc/self/fd/0", "stdin" },  { "/proc/self/fd/1", "stdout" },
		{ "/proc/self/fd/2", "stderr" },
	};
	_fd_ int dev = -1;

	if (p->spec->image == CELL_IMAGE_HOST) {
		dev = mnt_beneath(root, "dev", O_PATH | O_DIRECTORY);
	} else {
		/* The image's own /dev is a stranger's: cover it. */
		static const struct mnt_option options[] = {
			{ "size", "1m" }, { "nr_inodes", "64" }, { "mode", "0755" }, { NULL, NULL }
		};
		dev = mnt_make("tmpfs", options, MNT_SAFE);
		if (dev < 0 || mnt_place(dev, root, "dev", true) < 0)
			stage_fail(p, STAGE_DEV, 100);
	}
	if (dev < 0)
		stage_fail(p, STAGE_DEV, 101);
	for (uint32_t i = 0; i < ARRAY_SIZE(links); i++)
		if (symlinkat(links[i].target, dev, links[i].name) < 0)
			stage_fail(p, STAGE_DEV, 10 + i);
	if (mkdirat(dev, "pts", 0755) < 0 || mkdirat(dev, "shm", 01777) < 0)
		stage_fail(p, STAGE_DEV, 102);
	nodes_place(p, dev);
	if (p->spec->image != CELL_IMAGE_HOST) {
		/* The small /dev must not be the limit of /dev/shm. */
		const struct mnt_option shm_options[] = { { "size", p->layer_size },
							  { "nr_inodes", p->layer_inodes },
							  { "mode", "1777" },
							  { NULL, NULL } };
		_fd_ int shm = mnt_make("tmpfs", shm_options, MNT_SAFE);

		if (shm < 0 || mnt_place(shm, dev, "shm", true) < 0)
			stage_fail(p, STAGE_DEV, 103);
	}

	struct mnt_option options[] = { { "mode", "0620" },
					{ "ptmxmode", "0666" },
					{ "max", PLAN_PTYS },
					{ NULL, NULL },
					{ NULL, NULL } };

	if (p->ids.ranged)
		options[3] = (struct mnt_option){ "gid", "5" };
	_fd_ int pts = mnt_make("devpts", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);

	if (pts < 0 || mnt_place(pts, dev, "pts", true) < 0)
		stage_fail(p, STAGE_PTS, 0);
}

/* ---- all of it ------------------------------------------------------------------------------ */

/* Without privilege they are found by path: before anything of the host is covered. */
static void open_user_mounts(const struct plan *p, int trees[CELL_MOUNTS_MAX])
{
	for (uint32_t i = 0; i < p->n_mounts; i++) {
		const struct plan_mount *m = &p->mounts[i];

		trees[i] = -1;
		if (m->flags & CELL_MOUNT_PART)
			continue;
		trees[i] = m->fd >= 0 ? dup(m->fd) :
					reopen(m, MNT_SAFE | (m->rw ? 0 : MOUNT_ATTR_RDONLY));
		if (trees[i] < 0)
			stage_fail(p, STAGE_MOUNT, i);
	}
}

static void place_user_mounts(const struct plan *p, int root, const int trees[CELL_MOUNTS_MAX])
{
	for (uint32_t i = 0; i < p->n_mounts; i++) {
		if (p->mounts[i].flags & CELL_MOUNT_PART)
			continue;
		if (place_mount(p, i, root, trees[i]) < 0)
			stage_fail(p, STAGE_MOUNT, i);
		fd_close(trees[i]);
	}
}

/* A new proc can be mounted only where a whole one is visible: before any cover. */
int root_proc(const struct plan *p)
{
	/* A zygote is in the host's pid namespace, and sees only its own processes of it. */
	const struct mnt_option options[] = { { p->zygote ? "hidepid" : NULL, "invisible" },
					      { NULL, NULL } };
	int proc = mnt_make("proc", options, MNT_SAFE | MOUNT_ATTR_NOEXEC);

	if (proc < 0)
		stage_fail(p, STAGE_PROC, 0);
	return proc;
}

void root_build(const struct plan *p, int own_proc)
{
	const struct mnt_option layer_options[] = { { "size", p->layer_size },
						    { "nr_inodes", p->layer_inodes },
						    { "mode", "0755" },
						    { NULL, NULL } };
	_fd_ int proc = own_proc;

	(void)umask(0);
	if (mnt_restrict(proc, MOUNT_ATTR_RDONLY) < 0)
		stage_fail(p, STAGE_PROC, 2);
	_fd_ int layer = mnt_make("tmpfs", layer_options, MNT_SAFE);

	if (layer < 0 || move_mount(layer, "", AT_FDCWD, ATTACH_POINT, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		stage_fail(p, STAGE_LAYER, 0);

	int trees[CELL_MOUNTS_MAX];
	_fd_ int root = -1;

	open_user_mounts(p, trees);
	if (p->spec->image == CELL_IMAGE_HOST) {
		root = dup(layer);
		root_host(p, root);
	} else {
		root = overlay_root(p, layer);
	}
	build_dev(p, root);
	if (mnt_place(proc, root, "proc", true) < 0)
		stage_fail(p, STAGE_PROC, 1);
	mask_proc(p, root);
	if (!p->zygote)
		machine_place(p, layer);
	place_user_mounts(p, root, trees);

	/* Swap roots and let go of the host's: after this there is no path to it. */
	if (fchdir(root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
	    umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		stage_fail(p, STAGE_PIVOT, 0);
	(void)umask(022);
}
