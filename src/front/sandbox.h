/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox.h - What a client holds: a name, an owner, a room, and code that runs in it one after another.
 *
 * Without a name it lives for one execution. With a name it lives until it was idle for long enough,
 * or is removed; its room may be replaced (out of memory takes the cell as a whole), which its
 * epoch tells. A name belongs to its owner: another owner's does not exist for us.
 */
#ifndef CAISSON_FRONT_SANDBOX_H
#define CAISSON_FRONT_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>

#include "front/auth.h"
#include "front/pool.h"
#include "net/loop.h"
#include "wire/warden.h"

struct execution;
struct front;
struct room;

#define SANDBOX_NAME_MAX 64
#define SANDBOX_QUEUE_MAX 32u

struct sandbox {
	struct front *f;
	struct sandbox *prev, *next;
	char name[SANDBOX_NAME_MAX + 1]; /* empty: for one execution */
	char owner[OWNER_MAX];
	struct room *room;
	struct want want;
	struct timer want_timer, idle_timer;
	struct execution *head, **tail; /* head is the one that runs or is about to */
	size_t n_queued;
	bool running, ending;
	uint32_t epoch;
	uint64_t created_ns, used_ns, executions;
	struct cell_usage before; /* cumulative numbers when the last execution began */
	struct deferred reaper;
};

struct sandbox *sandbox_find(struct front *f, const char *owner, const char *name);

/* sandbox_submit() - Find or make the sandbox and queue @x there. @name NULL: a fresh one. */
void sandbox_submit(struct front *f, const char *owner, const char *name, struct execution *x);

/* sandbox_end() - Refuse what waits, end what runs, remove the room. */
void sandbox_end(struct sandbox *s, const char *why);

/* For execution.c: this one is done with (its done was called). */
void sandbox_executed(struct sandbox *s, struct execution *x);

#endif
