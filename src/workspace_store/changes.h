/* SPDX-License-Identifier: Apache-2.0 */
/* changes.h - The changes between two trees as lines of JSON, a set of paths, and packed trees. */
#ifndef CAISSON_WORKSPACE_CHANGES_H
#define CAISSON_WORKSPACE_CHANGES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "archive/tar_reader.h"
#include "base/buf.h"

struct changes;
struct err;

#define CHANGES_BYTES (8u << 20)

enum change { CHANGE_ADDED, CHANGE_MODIFIED, CHANGE_REMOVED, CHANGE_TYPE, CHANGE_MODE };

struct changes {
	struct buf lines;
	uint64_t n;
	bool cut; /* there are more changes than lines */
};

void changes_init(struct changes *c);
void changes_free(struct changes *c);

/* changes_add() - @was, @is: the entry before and after; NULL: there was, or is, none. */
void changes_add(struct changes *c, enum change what, const char *path, const struct stat *was,
		 const struct stat *is);

/* ---- paths --------------------------------------------------------------------------------- */

enum path_mark { PATH_NONE, PATH_SAME, PATH_CHANGED };

/* paths_put() - Remember @text in the set, which begins as NULL; a second time sets its mark. 0 or
 * -ENOMEM. */
int paths_put(void **paths, const char *text, enum path_mark mark);
enum path_mark paths_get(void *const *paths, const char *text);
void paths_free(void **paths);

/* ---- trees as archives, and compared: pack.c ------------------------------------------------ */

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

/* ---- a cell's workspace, merged: merge.c ----------------------------------------------------- */

struct merge {
	/* The caller's, before merge_begin(); the rest is zero. Borrowed descriptors. */
	int base, current;
	int next;       /* -1: only look */
	int state;      /* gets the entries of the archive alone; -1: not wanted */
	bool alone;     /* base and current are one */
	bool keep_rest; /* entries that the archive lacks stay */
	uint64_t max_bytes, max_files;

	uint64_t bytes, files; /* of the next tree */
	struct changes mine, conflicts;
	void *seen; /* paths of the archive (changes.h) */

	/* The entry at hand. */
	struct tar_entry en;
	struct stat was, is;
	bool had, same;
	int in, out;
	uint64_t at;
};

void merge_begin(struct merge *m);
extern const struct tar_sink merge_sink; /* its argument is the merge */
/* merge_finish() - After the end of the archive. 0 or -errno; with conflicts the next tree is not
 * complete. */
int merge_finish(struct merge *m, struct err *e);
void merge_end(struct merge *m);

#endif
