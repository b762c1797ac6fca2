/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nodes.h - The device nodes of a cell.
 *
 * A lock or a watch on /dev/null belongs to its inode: on the host's own, cells would meet each
 * other and the host. So each cell has nodes of its own, on a small tmpfs. A node only works on a
 * filesystem that was made in the host's user namespace, by who has CAP_MKNOD there: the warden of
 * root makes it, detached, and the child binds what is on it. Without that right the host's nodes
 * are bound; the receipt's mounts show which it was.
 */
#ifndef CAISSON_CELL_NODES_H
#define CAISSON_CELL_NODES_H

struct plan;

/* nodes_make() - The parent's half: a detached mount with the nodes; -1 where that is not allowed.
 */
int nodes_make(void);

/* nodes_place() - The child's: the nodes into @dev, an empty directory but for "pts". Ends the
 * child on failure. */
void nodes_place(const struct plan *p, int dev);

#endif
