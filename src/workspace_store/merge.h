/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge.h - An archive of a cell's workspace becomes a list of changes and the next generation.
 *
 * There are three trees: the base, which the sandbox began with; the current one, which others may
 * have committed since; and the next, which is made. Entries of the archive that equal the base are
 * taken from the current tree; entries that differ are the sandbox's changes; the sandbox removed
 * the entries that the archive lacks. If others changed a path that the sandbox changed too, that
 * is a conflict, and there will be no next tree.
 */
#ifndef CAISSON_WORKSPACE_MERGE_H
#define CAISSON_WORKSPACE_MERGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "archive/reader.h"
#include "workspace_store/changes.h"

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
