/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_mount.c - The client's mounts: binds, copies on write, writable parts, protected names.
 *
 * A copy on write is an overlay. Below it is the tree, which cannot be changed through it; above it
 * a tmpfs of its own that is as large as the cell's writable layer, is charged to the cell, and
 * goes with it. The mount of that tmpfs is removed once the overlay has it: its content is reached
 * through the overlay alone.
 *
 * A read-only directory whose sockets must be out of reach is an overlay too, without anything
 * above: its inodes are the cell's own, so a socket or pipe of the host in it is a name that no
 * process listens on. An overlay takes two lowers: the other is empty. Files that the host replaces
 * or removes after the cell has looked at them are seen as they were.
 *
 * A plain directory (packages, the daemon's programs) is the same one in every cell. A lock or a
 * watch on its inodes would be seen by all, and show when another cell starts python. So it is
 * covered by a view of itself, as /usr is (root_host.c), with the empty /sys as the second lower.
 *
 * Where only parts are writable, each of them is cloned from the mount while that is writable, and
 * put upon itself when it is not any more: a mount point can be neither renamed nor removed, and
 * nothing can be linked or moved from one mount to another.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "cell/plan.h"
#include "cell/protect.h"
#include "cell/spec.h"
#include "cell/stage.h"

/* ---- overlays ------------------------------------------------------------------------------ */

/* The upper layer's own mount, with the tree in it, at the place where the overlay will be. */
static int make_layer(const struct plan *p, int root, const char *dst, int tree)
{
	static const char *const dirs[] = { "lower", "upper", "work" };
	const struct mnt_option options[] = { { "size", p->layer_size },
					      { "nr_inodes", p->layer_inodes },
					      { "mode", "0755" },
					      { NULL, NULL } };
	_fd_ int layer = mnt_make("tmpfs", options, MNT_SAFE);

	if (layer < 0 || mnt_place(layer, root, dst, true) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		if (mkdirat(layer, dirs[i], 0755) < 0)
			return -1;
	/* The overlay's root has the owner of its upper. */
	if (p->ids.ranged && fchownat(layer, "upper", CELL_UID, CELL_GID, AT_SYMLINK_NOFOLLOW) < 0)
		return -1;
	if (mnt_place(tree, layer, "lower", true) < 0)
		return -1;
	return TAKE_FD(layer);
}

static int make_overlay(bool cow)
{
	static const struct mnt_option copy[] = {
		{ "lowerdir", "lower" },        { "upperdir", "upper" }, { "workdir", "work" },
		{ "redirect_dir", "nofollow" }, { "index", "off" },      { "metacopy", "off" },
		{ "userxattr", NULL },          { NULL, NULL },
	};

	return cow ? mnt_make("overlay", copy, MNT_SAFE) : mnt_view("lower:upper");
}

static int place_overlay(const struct plan *p, int root, const char *dst, int tree, bool cow)
{
	_fd_ int layer = make_layer(p, root, dst, tree);

	if (layer < 0 || fchdir(layer) < 0)
		return -1;
	_fd_ int merged = make_overlay(cow);

	if (merged < 0 || umount2(".", MNT_DETACH) < 0 || fchdir(root) < 0 ||
	    mnt_place(merged, root, dst, true) < 0)
		return -1;
	return TAKE_FD(merged);
}

/* Where the Linux kernel refuses it, the directory is bound as it is; the receipt's mounts show
 * which was done. */
static void cover_plain(int root, const char *dst)
{
	char lower[CELL_DST_MAX + sizeof(":sys")];

	(void)snprintf(lower, sizeof(lower), "%s:sys", dst);
	_fd_ int own = fchdir(root) < 0 ? -1 : mnt_view(lower);

	if (own >= 0)
		(void)mnt_place(own, root, dst, true);
}

/* ---- parts --------------------------------------------------------------------------------- */

/* A directory that is missing in a copy on write is made, and is the agent's. */
static int clone_part(const struct plan *p, int root, const char *dst, bool make)
{
	_fd_ int dir = mnt_beneath(root, dst, O_RDONLY | O_DIRECTORY);

	if (dir < 0 && errno == ENOENT && make) {
		fd_close(mnt_ensure_dir(root, dst));
		dir = mnt_beneath(root, dst, O_RDONLY | O_DIRECTORY);
		if (dir >= 0 && p->ids.ranged && fchown(dir, CELL_UID, CELL_GID) < 0)
			return -1;
	}
	if (dir < 0)
		return -1;
	return open_tree(dir, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
}

static int place_parts(const struct plan *p, uint32_t of, int root, int mount)
{
	int parts[CELL_MOUNTS_MAX];
	struct mount_attr closed = { .attr_set = MOUNT_ATTR_RDONLY };
	uint32_t n = 0, r = 0;

	while (of + 1 + n < p->n_mounts && p->mounts[of + 1 + n].flags & CELL_MOUNT_PART) {
		parts[n] = clone_part(p, root, p->mounts[of + 1 + n].dst,
				      p->mounts[of].flags & CELL_MOUNT_COW);
		if (parts[n++] < 0)
			return -1;
	}
	if (n == 0)
		return 0;
	if (mount_setattr(mount, "", AT_EMPTY_PATH, &closed, sizeof(closed)) < 0)
		return -1;
	for (; r < n; r++) {
		if (mnt_place(parts[r], root, p->mounts[of + 1 + r].dst, true) < 0)
			return -1;
		fd_close(parts[r]);
	}
	return 0;
}

int place_mount(const struct plan *p, uint32_t i, int root, int tree)
{
	const struct plan_mount *m = &p->mounts[i];
	_fd_ int merged = -1;

	if (m->flags & CELL_MOUNT_COW || m->apart) {
		merged = place_overlay(p, root, m->dst, tree, m->flags & CELL_MOUNT_COW);
		if (merged < 0)
			return -1;
	} else if (mnt_place(tree, root, m->dst, m->is_dir) < 0) {
		return -1;
	} else if (m->flags == CELL_MOUNT_PLAIN && m->is_dir) {
		cover_plain(root, m->dst);
	}
	if (m->flags & CELL_MOUNT_PROTECT && protect_cover(root, m->dst) < 0)
		return -1;
	return place_parts(p, i, root, merged >= 0 ? merged : tree);
}
