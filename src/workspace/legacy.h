/* SPDX-License-Identifier: Apache-2.0 */
/*
 * legacy.h - What a shelf that is killed leaves to the next one, in memory that both have.
 *
 * Two things can be done and not told when it dies: a workspace was made, or a tree got its name. The first is nobody's
 * and is removed; the second is what a sandbox asked for, and who asked must hear of it: asking again, it would
 * find its own work as somebody else's. So a job says, before it gives a tree its name, what it is going to answer.
 */
#ifndef CAISSON_WORKSPACE_LEGACY_H
#define CAISSON_WORKSPACE_LEGACY_H

#include <stdbool.h>
#include <sys/types.h>

#include "wire/shelf.h"

/* One job's: written by it alone. */
struct promise {
	struct shelf_reply reply; /* seq 0: none */
	ino_t inode;              /* of the tree that gets its name */
};

struct legacy {
	char made[SHELF_KEY_LEN + 1]; /* the workspace that was made last; empty: none yet */
	struct promise promises[SHELF_JOBS_MAX];
};

/* legacy_new() - Before the first shelf is forked. NULL with errno. */
struct legacy *legacy_new(void);

/* promise_make() - If @tree, a descriptor, gets the name of this generation of @key, this is the answer. */
void promise_make(struct promise *p, const struct shelf_reply *r, const char *key,
		  uint64_t generation, int tree);
void promise_drop(struct promise *p);

/* promise_is_kept() - Whether it has got that name. */
bool promise_is_kept(const struct promise *p, int shelf);

#endif
