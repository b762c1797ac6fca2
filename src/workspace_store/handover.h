/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handover.h - Notes that a worker which is killed leaves to the next one, in shared memory.
 *
 * When a worker dies, two acts can be done and not reported: a workspace was made, or a tree got
 * its name. The next worker removes the workspace, which has no owner yet. The tree is a sandbox's
 * commit, and its client must get the report: a second commit would find the first one as a change
 * by somebody else. So a job notes its answer before it gives a tree its name.
 */
#ifndef CAISSON_WORKSPACE_HANDOVER_H
#define CAISSON_WORKSPACE_HANDOVER_H

#include <stdbool.h>
#include <sys/types.h>

#include "wire/workspace_store.h"

/* Only the job writes it. */
struct promise {
	struct workspace_store_reply reply; /* seq 0: none */
	ino_t inode;                        /* of the tree that gets its name */
};

struct handover {
	char made[WORKSPACE_STORE_KEY_LEN + 1]; /* the workspace that was made last, or empty */
	struct promise promises[WORKSPACE_STORE_JOBS_MAX];
};

/* handover_new() - Before the first worker is forked. NULL with errno. */
struct handover *handover_new(void);

/* promise_make() - If @tree, a descriptor, gets the name of this generation of @key, @r is the
 * answer. */
void promise_make(struct promise *p, const struct workspace_store_reply *r, const char *key,
		  uint64_t generation, int tree);
void promise_drop(struct promise *p);

/* promise_is_kept() - Whether the tree has that name. */
bool promise_is_kept(const struct promise *p, int store_dir);

#endif
