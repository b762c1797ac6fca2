/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge.h - From an archive of a cell's workspace to what changed, and to the next generation.
 *
 * Three trees: the base, which the sandbox began with; the current one, which may have become
 * another since; and the next, which is made. What the archive has as the base has it is taken from
 * the current tree, what differs is the sandbox's, what the archive lacks was removed by it. When
 * the current tree and the sandbox changed the same path, that is a conflict, and there will be no
 * next tree.
 */
#ifndef CAISSON_WORKSPACE_MERGE_H
#define CAISSON_WORKSPACE_MERGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "archive/reader.h"
#include "workspace_store/changes.h"

struct err;

struct merge {
	/* The caller's, before merge_begin(); the rest is zero. Borrowed descriptors. */
	int base, current;
	int next;   /* -1: only look */
	int state;  /* what the archive has and no more, for the next comparison; -1: not wanted */
	bool alone; /* base and current are one */
	bool keep_rest; /* what the archive lacks stays */
	uint64_t max_bytes, max_files;

	uint64_t bytes, files; /* of the next tree */
	struct changes mine, conflicts;
	struct paths seen;

	/* The entry at hand. */
	struct tar_entry en;
	struct stat was, is;
	bool had, same;
	int in, out;
	uint64_t at;
};

void merge_begin(struct merge *m);
extern const struct tar_sink merge_sink; /* its argument is the merge */
/* merge_finish() - After the end of the archive. 0 or -errno; conflicts.n says whether it may be
 * used. */
int merge_finish(struct merge *m, struct err *e);
void merge_end(struct merge *m);

#endif
