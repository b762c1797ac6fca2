/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handover.h - What a workspace store that is killed leaves to the next one, in memory that both
 * have.
 *
 * Two things can be done and not told when it dies: a workspace was made, or a tree got its name.
 * The first is nobody's and is removed; the second is what a sandbox asked for, and who asked must
 * hear of it: asking again, it would find its own work as somebody else's. So a job says, before it
 * gives a tree its name, what it is going to answer.
 */
#ifndef CAISSON_WORKSPACE_HANDOVER_H
#define CAISSON_WORKSPACE_HANDOVER_H

#include <stdbool.h>
#include <sys/types.h>

#include "wire/workspace_store.h"

/* One job's: written by it alone. */
struct promise {
	struct workspace_store_reply reply; /* seq 0: none */
	ino_t inode;                        /* of the tree that gets its name */
};

struct handover {
	char made[WORKSPACE_STORE_KEY_LEN + 1]; /* the workspace that was made last; empty: none yet
						 */
	struct promise promises[WORKSPACE_STORE_JOBS_MAX];
};

/* handover_new() - Before the first store_dir is forked. NULL with errno. */
struct handover *handover_new(void);

/* promise_make() - If @tree, a descriptor, gets the name of this generation of @key, this is the
 * answer. */
void promise_make(struct promise *p, const struct workspace_store_reply *r, const char *key,
		  uint64_t generation, int tree);
void promise_drop(struct promise *p);

/* promise_is_kept() - Whether it has got that name. */
bool promise_is_kept(const struct promise *p, int store_dir);

#endif
