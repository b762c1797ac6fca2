/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nodes.c - The device nodes of a cell.
 *
 * A lock or a watch on /dev/null belongs to its inode: on the host's own, cells would meet each
 * other and the host. So each cell has nodes of its own, on a small tmpfs. A node works only on a
 * filesystem that a process with CAP_MKNOD made in the host's user namespace: the warden of root
 * makes it, detached, and the child binds the nodes on it. Without that right the host's nodes are
 * bound; the receipt's mounts show which was done.
 */
#include <stdint.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "cell/mnt.h"
#include "cell/plan.h"
#include "cell/root.h"
#include "cell/stage.h"

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

static int clone_node(const struct plan *p, const struct node *n)
{
	if (p->nodes_fd < 0)
		return mnt_of_host(n->host, NODE_ATTRS);
	_fd_ int tree = open_tree(p->nodes_fd, n->name, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	return tree < 0 || mnt_restrict(tree, NODE_ATTRS) < 0 ? -1 : TAKE_FD(tree);
}

void nodes_place(const struct plan *p, int dev)
{
	/* Parts can be bound only of an attached mount: "pts" holds it for a moment. */
	if (p->nodes_fd >= 0 && mnt_place(p->nodes_fd, dev, "pts", true) < 0)
		stage_fail(p, STAGE_DEV, 104);
	for (uint32_t i = 0; i < ARRAY_SIZE(nodes); i++) {
		_fd_ int tree = clone_node(p, &nodes[i]);

		if (tree < 0 || mnt_place(tree, dev, nodes[i].name, false) < 0)
			stage_fail(p, STAGE_DEV, i);
	}
	if (p->nodes_fd >= 0 && (fchdir(dev) < 0 || umount2("pts", MNT_DETACH) < 0))
		stage_fail(p, STAGE_DEV, 105);
}
