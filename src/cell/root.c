/* SPDX-License-Identifier: Apache-2.0 */
/*
 * root.c - The root filesystem of a cell, from nothing, by system calls only.
 *
 * Theory of operation. One tmpfs is the writable layer: it has the disk and inode limits, it is
 * charged to the cell's memory, and it disappears with the mount namespace, so there is nothing on
 * the host to clean up after a crash. For the host image that tmpfs *is* the root, with the
 * machine's /usr bound read-only into it. For a directory image an overlay of the directory
 * (lower, read-only) and the layer (upper) is the root.
 *
 * Every mount is made detached, restricted while nobody can see it, and only then moved into
 * place, so there is no moment in which it is there without its flags. Every target is resolved
 * below the new root without following links: a hostile image can not lead a mount elsewhere.
 *
 * Runs in the child, after clone: see stage.h. The paths on the host that are named here are
 * constants.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "cell/plan.h"
#include "cell/spec.h"
#include "cell/stage.h"

/* Any directory that surely exists; the layer covers it until the pivot takes everything away. */
#define ATTACH_POINT "/proc"

#define ATTR_SAFE (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

/* ---- small steps ------------------------------------------------------------------------- */

static int beneath(int root, const char *path, int flags)
{
	struct open_how how = {
		.flags = (unsigned int)(flags | O_CLOEXEC),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};

	return (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
}

/* A directory below @root, made with all its missing parents. The descriptor, or -1. */
static int ensure_dir(int root, const char *path)
{
	_fd_ int dir = dup(root);

	while (dir >= 0 && *path) {
		char part[CELL_DST_MAX];
		size_t n = strcspn(path, "/");

		memcpy(part, path, n);
		part[n] = '\0';
		path += n + (path[n] == '/');
		if (mkdirat(dir, part, 0755) < 0 && errno != EEXIST)
			return -1;
		int next = beneath(dir, part, O_PATH | O_DIRECTORY);

		fd_close(dir);
		dir = next;
	}
	return TAKE_FD(dir);
}

static int ensure_file(int root, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char parent[CELL_DST_MAX] = "";

	if (slash)
		memcpy(parent, path, (size_t)(slash - path));
	_fd_ int dir = ensure_dir(root, parent);

	if (dir < 0)
		return -1;
	_fd_ int made = beneath(dir, name, O_CREAT | O_EXCL | O_WRONLY);

	if (made < 0 && errno != EEXIST && errno != EROFS)
		return -1;
	return beneath(dir, name, O_PATH);
}

/* Move a detached mount onto @path below @root; the target is made when it is missing. */
static int place(int mount, int root, const char *path, bool is_dir)
{
	_fd_ int target = is_dir ? ensure_dir(root, path) : ensure_file(root, path);

	if (target < 0)
		return -1;
	return move_mount(mount, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
}

static int restrict_mount(int mount, uint64_t attrs)
{
	struct mount_attr attr = { .attr_set = attrs, .propagation = MS_PRIVATE };

	return mount_setattr(mount, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr));
}

/* A restricted private copy of what is at a path of the host. */
static int host_tree(const char *path, uint64_t attrs)
{
	int fd = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);

	if (fd >= 0 && restrict_mount(fd, attrs) < 0)
		return fd_close(fd);
	return fd;
}

struct option {
	const char *key, *value;
};

/* A new filesystem instance, detached. */
static int make_fs(const char *type, const struct option *options, uint64_t attrs)
{
	_fd_ int fs = fsopen(type, FSOPEN_CLOEXEC);

	if (fs < 0)
		return -1;
	for (; options->key; options++)
		if (fsconfig(fs, FSCONFIG_SET_STRING, options->key, options->value, 0) < 0)
			return -1;
	if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -1;
	return fsmount(fs, FSMOUNT_CLOEXEC, (unsigned int)attrs);
}

static int put_file(int root, const char *path, const char *text)
{
	_fd_ int fd =
		openat(root, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);

	return fd < 0 ? -1 : fd_write_all(fd, text, strlen(text));
}

/* ---- the tree of the host image ---------------------------------------------------------- */

static const struct tree_row {
	const char *path;
	mode_t mode;
	bool agent; /* belongs to the agent instead of root */
} tree_rows[] = {
	{ "usr", 0755, false },      { "etc", 0755, false },  { "etc/ssl", 0755, false },
	{ "dev", 0755, false },      { "proc", 0555, false }, { "sys", 0555, false },
	{ "tmp", 01777, false },     { "var", 0755, false },  { "var/tmp", 01777, false },
	{ "run", 0755, false },      { "home", 0755, false }, { "home/agent", 0755, true },
	{ "workspace", 0755, true },
};

static const struct etc_row {
	const char *path, *text;
} etc_rows[] = {
	{ "etc/passwd", "root:x:0:0:root:/root:/usr/sbin/nologin\n"
			"agent:x:1000:1000:agent:/home/agent:/bin/bash\n"
			"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n" },
	{ "etc/group", "root:x:0:\ntty:x:5:\nagent:x:1000:\nnogroup:x:65534:\n" },
	{ "etc/hosts", "127.0.0.1 localhost " CELL_HOSTNAME "\n::1 localhost\n" },
	{ "etc/hostname", CELL_HOSTNAME "\n" },
	{ "etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n" },
	{ "etc/resolv.conf", "" },
};

/*
 * Of the real /etc only what indexes or configures /usr and says nothing about the machine's
 * people, services or secrets: without these the dynamic loader misses libraries outside the
 * default directories, awk, R or BLAS (Debian alternatives) are dangling links, and matplotlib and
 * whatever draws text do not start.
 */
static const struct usr_row {
	const char *host, *path;
	bool is_dir, optional;
} usr_rows[] = {
	{ "/usr", "usr", true, false },
	{ "/etc/ld.so.cache", "etc/ld.so.cache", false, true },
	{ "/etc/alternatives", "etc/alternatives", true, true },
	{ "/etc/ssl/certs", "etc/ssl/certs", true, true },
	{ "/etc/R", "etc/R", true, true },
	{ "/etc/fonts", "etc/fonts", true, true },
	{ "/etc/matplotlibrc", "etc/matplotlibrc", false, true },
};

static void host_tree_rows(const struct plan *p, int root)
{
	for (uint32_t i = 0; i < ARRAY_SIZE(tree_rows); i++) {
		const struct tree_row *t = &tree_rows[i];

		if (mkdirat(root, t->path, t->mode) < 0 || fchmodat(root, t->path, t->mode, 0) < 0)
			stage_fail(p, STAGE_TREE, i);
		/* A zygote builds its root outside of any user namespace: nothing there is the agent's. */
		if (t->agent && p->ids.ranged && !p->zygote &&
		    fchownat(root, t->path, CELL_UID, CELL_GID, 0) < 0)
			stage_fail(p, STAGE_TREE, i);
	}
	for (uint32_t i = 0; i < ARRAY_SIZE(etc_rows); i++)
		if (put_file(root, etc_rows[i].path, etc_rows[i].text) < 0)
			stage_fail(p, STAGE_ETC, i);
	if (symlinkat("../usr/lib/os-release", root, "etc/os-release") < 0 ||
	    symlinkat("/proc/mounts", root, "etc/mtab") < 0)
		stage_fail(p, STAGE_ETC, (uint32_t)ARRAY_SIZE(etc_rows));
}

static void host_usr(const struct plan *p, int root)
{
	for (uint32_t i = 0; i < ARRAY_SIZE(usr_rows); i++) {
		const struct usr_row *u = &usr_rows[i];
		_fd_ int tree = host_tree(u->host, ATTR_SAFE | MOUNT_ATTR_RDONLY);

		if (tree < 0 && errno == ENOENT && u->optional)
			continue;
		if (tree < 0 || place(tree, root, u->path, u->is_dir) < 0)
			stage_fail(p, STAGE_USR, i);
	}
	for (uint32_t i = 0; i < p->n_top; i++) {
		const struct plan_top *t = &p->top[i];
		char host[16] = "/";

		if (t->link[0]) {
			if (symlinkat(t->link, root, t->name) < 0)
				stage_fail(p, STAGE_USR, 100 + i);
			continue;
		}
		memcpy(host + 1, t->name, strlen(t->name) + 1);
		_fd_ int tree = host_tree(host, ATTR_SAFE | MOUNT_ATTR_RDONLY);

		if (tree < 0 || place(tree, root, t->name, true) < 0)
			stage_fail(p, STAGE_USR, 100 + i);
	}
}

/* ---- the directory image ------------------------------------------------------------------ */

/* Find the client's object again by path, and prove that it is the one it opened. */
static int reopen(const struct plan_mount *m, uint64_t attrs)
{
	struct stat st;
	_fd_ int tree = host_tree(m->src, attrs);

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

/* Lower: the image. Upper and work: directories of the layer. The merged root is made detached. */
static int overlay_root(const struct plan *p, int layer)
{
	static const char *const dirs[] = { "lower", "upper", "work", "root" };
	_fd_ int lower = p->image.fd < 0 ? reopen(&p->image, ATTR_SAFE | MOUNT_ATTR_RDONLY) :
					   dup(p->image.fd);

	if (lower < 0)
		stage_fail(p, STAGE_OVERLAY, 0);
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		if (mkdirat(layer, dirs[i], 0755) < 0)
			stage_fail(p, STAGE_OVERLAY, 1);
	if (place(lower, layer, "lower", true) < 0 || fchdir(layer) < 0)
		stage_fail(p, STAGE_OVERLAY, 2);

	/* Paths are relative to the layer. Redirects and copied metadata stay off: an upper that
	 * outlives its cell could otherwise lead a later mount astray. */
	static const struct option options[] = {
		{ "lowerdir", "lower" }, { "upperdir", "upper" },
		{ "workdir", "work" },   { "redirect_dir", "nofollow" },
		{ "index", "off" },      { "metacopy", "off" },
		{ NULL, NULL },
	};
	_fd_ int fs = fsopen("overlay", FSOPEN_CLOEXEC);

	if (fs < 0)
		stage_fail(p, STAGE_OVERLAY, 3);
	for (const struct option *o = options; o->key; o++)
		if (fsconfig(fs, FSCONFIG_SET_STRING, o->key, o->value, 0) < 0)
			stage_fail(p, STAGE_OVERLAY, 4);
	if (fsconfig(fs, FSCONFIG_SET_FLAG, "userxattr", NULL, 0) < 0 ||
	    fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		stage_fail(p, STAGE_OVERLAY, 5);
	_fd_ int merged = fsmount(fs, FSMOUNT_CLOEXEC, ATTR_SAFE);

	if (merged < 0 || place(merged, layer, "root", true) < 0)
		stage_fail(p, STAGE_OVERLAY, 6);

	/* What every cell has, whatever the image brings. A directory of the image keeps its mode;
	 * the agent's two become the agent's. */
	static const struct tree_row needed[] = {
		{ "tmp", 01777, false },      { "workspace", 0755, true }, { "home", 0755, false },
		{ "home/agent", 0755, true }, { "dev", 0755, false },      { "proc", 0555, false },
		{ "sys", 0555, false },
	};
	for (uint32_t i = 0; i < ARRAY_SIZE(needed); i++) {
		const struct tree_row *t = &needed[i];

		/* A zygote has no agent, and no right to copy up what belongs to the image's users. */
		if (p->zygote && t->agent)
			continue;
		_fd_ int was = beneath(merged, t->path, O_PATH | O_DIRECTORY);

		if (was < 0)
			fd_close(ensure_dir(merged, t->path));
		_fd_ int dir = beneath(merged, t->path, O_RDONLY | O_DIRECTORY);

		if (dir < 0 || (was < 0 && fchmod(dir, t->mode) < 0) ||
		    (t->agent && p->ids.ranged && !p->zygote &&
		     fchown(dir, CELL_UID, CELL_GID) < 0))
			stage_fail(p, STAGE_TREE, i);
	}
	return TAKE_FD(merged);
}

/* ---- /dev and /proc ------------------------------------------------------------------------ */

static void build_dev(const struct plan *p, int root)
{
	static const char *const nodes[] = { "null", "zero", "full", "random", "urandom", "tty" };
	static const struct {
		const char *target, *name;
	} links[] = {
		{ "pts/ptmx", "ptmx" },          { "/proc/self/fd", "fd" },
		{ "/proc/self/fd/0", "stdin" },  { "/proc/self/fd/1", "stdout" },
		{ "/proc/self/fd/2", "stderr" },
	};
	_fd_ int dev = -1;

	if (p->spec->image == CELL_IMAGE_HOST) {
		dev = beneath(root, "dev", O_PATH | O_DIRECTORY);
	} else {
		/* The image's own /dev is not to be believed: cover it. */
		static const struct option options[] = {
			{ "size", "1m" }, { "nr_inodes", "64" }, { "mode", "0755" }, { NULL, NULL }
		};
		dev = make_fs("tmpfs", options, ATTR_SAFE);
		if (dev < 0 || place(dev, root, "dev", true) < 0)
			stage_fail(p, STAGE_DEV, 100);
	}
	if (dev < 0)
		stage_fail(p, STAGE_DEV, 101);
	for (uint32_t i = 0; i < ARRAY_SIZE(nodes); i++) {
		char host[16] = "/dev/";

		memcpy(host + 5, nodes[i], strlen(nodes[i]) + 1);
		_fd_ int tree = host_tree(host, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);

		if (tree < 0 || place(tree, dev, nodes[i], false) < 0)
			stage_fail(p, STAGE_DEV, i);
	}
	for (uint32_t i = 0; i < ARRAY_SIZE(links); i++)
		if (symlinkat(links[i].target, dev, links[i].name) < 0)
			stage_fail(p, STAGE_DEV, 10 + i);
	if (mkdirat(dev, "pts", 0755) < 0 || mkdirat(dev, "shm", 01777) < 0 ||
	    fchmodat(dev, "shm", 01777, 0) < 0)
		stage_fail(p, STAGE_DEV, 102);
	if (p->spec->image == CELL_IMAGE_DIR) {
		/* The small /dev must not be the limit of /dev/shm. */
		const struct option shm_options[] = { { "size", p->layer_size },
						      { "nr_inodes", p->layer_inodes },
						      { "mode", "1777" },
						      { NULL, NULL } };
		_fd_ int shm = make_fs("tmpfs", shm_options, ATTR_SAFE);

		if (shm < 0 || place(shm, dev, "shm", true) < 0)
			stage_fail(p, STAGE_DEV, 103);
	}

	struct option options[] = {
		{ "mode", "0620" }, { "ptmxmode", "0666" }, { NULL, NULL }, { NULL, NULL }
	};

	if (p->ids.ranged)
		options[2] = (struct option){ "gid", "5" };
	_fd_ int pts = make_fs("devpts", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);

	if (pts < 0 || place(pts, dev, "pts", true) < 0)
		stage_fail(p, STAGE_PTS, 0);
}

/* Files that tell about, or act on, the whole machine; what this kernel does not have is skipped. */
static const struct mask_row {
	const char *path;
	bool is_dir;
} mask_rows[] = {
	{ "proc/kcore", false },
	{ "proc/keys", false },
	{ "proc/key-users", false },
	{ "proc/kallsyms", false },
	{ "proc/kmsg", false },
	{ "proc/sysrq-trigger", false },
	{ "proc/timer_list", false },
	{ "proc/sched_debug", false },
	{ "proc/latency_stats", false },
	{ "proc/interrupts", false },
	{ "proc/iomem", false },
	{ "proc/ioports", false },
	{ "proc/modules", false },
	{ "proc/config.gz", false },
	{ "proc/swaps", false },
	{ "proc/acpi", true },
	{ "proc/asound", true },
	{ "proc/bus", true },
	{ "proc/driver", true },
	{ "proc/fs", true },
	{ "proc/irq", true },
	{ "proc/scsi", true },
	{ "proc/tty", true },
};

static void build_proc(const struct plan *p, int root, int proc)
{
	if (place(proc, root, "proc", true) < 0)
		stage_fail(p, STAGE_PROC, 1);
	for (uint32_t i = 0; i < ARRAY_SIZE(mask_rows); i++) {
		const struct mask_row *m = &mask_rows[i];
		_fd_ int target = beneath(root, m->path, O_PATH);

		if (target < 0 && errno == ENOENT)
			continue;
		/* Nothing to read: /dev/null over a file, the empty /sys over a directory. */
		_fd_ int cover = open_tree(root, m->is_dir ? "sys" : "dev/null",
					   OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

		if (target < 0 || cover < 0 ||
		    restrict_mount(cover,
				   MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC) < 0 ||
		    move_mount(cover, "", target, "",
			       MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
			stage_fail(p, STAGE_MASK, i);
	}
}

/* ---- all of it ------------------------------------------------------------------------------ */

static void user_mounts(const struct plan *p, int root)
{
	for (uint32_t i = 0; i < p->n_mounts; i++) {
		const struct plan_mount *m = &p->mounts[i];
		_fd_ int tree = m->fd >= 0 ? dup(m->fd) :
					     reopen(m, ATTR_SAFE | (m->rw ? 0 : MOUNT_ATTR_RDONLY));

		if (tree < 0 || place(tree, root, m->dst, m->is_dir) < 0)
			stage_fail(p, STAGE_MOUNT, i);
	}
}

void root_build(const struct plan *p)
{
	const struct option layer_options[] = { { "size", p->layer_size },
						{ "nr_inodes", p->layer_inodes },
						{ "mode", "0755" },
						{ NULL, NULL } };
	/* A zygote is in the host's pid namespace; of that it shall see its own processes only. */
	const struct option proc_options[] = { { p->zygote ? "hidepid" : NULL, "invisible" },
					       { NULL, NULL } };

	(void)umask(0);
	/* A new proc is only given to who still sees a whole one, so before anything is covered. */
	_fd_ int proc =
		make_fs("proc", proc_options, ATTR_SAFE | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY);

	if (proc < 0)
		stage_fail(p, STAGE_PROC, 0);
	_fd_ int layer = make_fs("tmpfs", layer_options, ATTR_SAFE);

	if (layer < 0 || move_mount(layer, "", AT_FDCWD, ATTACH_POINT, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		stage_fail(p, STAGE_LAYER, 0);

	_fd_ int root = -1;

	if (p->spec->image == CELL_IMAGE_HOST) {
		root = dup(layer);
		host_tree_rows(p, root);
		host_usr(p, root);
	} else {
		root = overlay_root(p, layer);
	}
	build_dev(p, root);
	build_proc(p, root, proc);
	user_mounts(p, root);

	/* Swap roots and let go of the host's: after this there is no path to it. */
	if (fchdir(root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
	    umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		stage_fail(p, STAGE_PIVOT, 0);
	(void)umask(022);
}
