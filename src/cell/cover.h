/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cover.h - Inodes of the cell's own for the directories of the host that it sees.
 *
 * A lock, a lease or a watch belongs to an inode: on the host's own inodes cells would meet each
 * other, and the host. So each directory is covered, in the cell's mount namespace alone, by a
 * read-only overlay of itself, and what is bound into the root comes from there. The content of
 * files stays one page cache.
 *
 * Where the kernel does not give such an overlay, the directory is bound as it is; the receipt's
 * mounts show which it was.
 */
#ifndef CAISSON_CELL_COVER_H
#define CAISSON_CELL_COVER_H

#include <stdint.h>

/* cover_choose() - The parent's half: which directories can be covered, as bits. Read once. */
uint32_t cover_choose(void);

/* cover_from() - The same over an open mountinfo, for tests. */
uint32_t cover_from(int mountinfo);

/* cover_host() - The child's: cover them, below the host's root. The current directory has an empty
 * "sys". What is to be found by path as the host has it must have been opened before. */
void cover_host(uint32_t chosen);

#endif
