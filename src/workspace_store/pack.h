/* SPDX-License-Identifier: Apache-2.0 */
/* pack.h - A tree as an archive, and the differences between two trees. */
#ifndef CAISSON_WORKSPACE_PACK_H
#define CAISSON_WORKSPACE_PACK_H

#include <stdint.h>

struct changes;
struct err;

/*
 * pack_tree() - Write a tree as tar (ustar, pax where needed) to a pipe, without the end of the
 * archive.
 * @from: -1, or a tree: entries that it has unchanged are left out
 * @ret_bytes, @ret_files: of content; entries. 0 or -errno.
 */
int pack_tree(int tree, int from, int fd, uint64_t *ret_bytes, uint64_t *ret_files, struct err *e);

/* pack_end() - The end of the archive, without which a reader takes none of it. 0 or -errno. */
int pack_end(int fd, struct err *e);

/* pack_changes() - The changes from @from to @tree. 0 or -errno. */
int pack_changes(int from, int tree, struct changes *ret, struct err *e);

#endif
