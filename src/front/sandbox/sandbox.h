/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox.h - What a client holds: a name, an owner, a spec, a cell, and what is done in it.
 *
 * Without a name it lives for one execution. With a name it lives until it was idle for long
 * enough, its time is over, or it is removed; its cell may be replaced (out of memory takes the
 * cell as a whole), which its epoch tells. Stopped, or lost with the daemon that held it, it is a
 * record: it answers for its name until it is removed. A name belongs to its owner: another owner's
 * does not exist for us.
 *
 * Two things are done in a sandbox: executions, one after another, in kernels; and everything else
 * (commands, file calls) side by side, by whoever has entered.
 */
#ifndef CAISSON_FRONT_SANDBOX_H
#define CAISSON_FRONT_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>

#include "front/cell/cell.h"
#include "front/cell/pool.h"
#include "front/output/tail.h"
#include "front/sandbox/record.h"
#include "front/spec/sandbox_spec.h"
#include "front/support/name.h"
#include "net/loop.h"
#include "wire/warden.h"

struct cell;
struct code;
struct egress;
struct execution;
struct image_use;
struct jkernel;
struct keeper_slot;
struct port;
struct processes;
struct refusal;
struct sandbox;
struct sandboxes;

#define SANDBOX_NAME_MAX 64
#define SANDBOX_QUEUE_MAX 32u

enum sandbox_state { SANDBOX_RUNNING, SANDBOX_STOPPED, SANDBOX_LOST };

/*
 * Somebody who needs the cell. The struct is the asker's and zero but for arg and the functions;
 * exactly one of in and refused is called, perhaps at once. After in the sandbox counts as used
 * until sandbox_leave(), or until gone, which is called when the cell ends first: then it has left.
 */
struct entry {
	void (*in)(struct entry *en, struct cell *r);
	void (*refused)(struct entry *en, const struct refusal *why);
	void (*gone)(struct entry *en, const struct cell_usage *u);
	void *arg;
	struct sandbox *sandbox; /* NULL: has left, or never entered */
	struct entry *prev, *next;
	bool inside;
};

/* Somebody who wants to know when it does not run any more. Called once; it has then left the list.
 */
struct sandbox_waiter {
	void (*over)(struct sandbox_waiter *w, struct sandbox *s);
	void *arg;
	struct sandbox *sandbox; /* NULL: does not wait */
	struct sandbox_waiter *prev, *next;
};

struct sandbox {
	struct sandboxes *sandboxes;
	struct sandbox *prev, *next;
	char id[33];                     /* of this one; a later one of the same name has another */
	char name[SANDBOX_NAME_MAX + 1]; /* empty: for one execution */
	char owner[OWNER_MAX];
	struct sandbox_spec spec;
	struct image_use *image; /* what its cells are made from; held */
	json_t *vars; /* what everything in it has in its environment: spec.env and secrets; NULL:
			 nothing */
	enum sandbox_state state;
	char reason[160]; /* why it is not running */
	int slot;         /* in the keeper's table; -1: nothing of it is kept */
	struct cell *cell;
	struct cell_want cell_want; /* of a cell that is made for it alone */
	struct want want;
	struct timer want_timer, idle_timer, end_timer, stop_timer;
	struct execution *head, **tail; /* head is the one that runs or is about to */
	size_t n_queued;
	struct entry *entries; /* inside, or waiting for a cell */
	size_t n_inside, n_waiting;
	struct sandbox_waiter *waiters;
	bool running, ending, stopping;
	bool expired; /* it ends because its deadline is there */
	uint32_t epoch;
	uint64_t created_ns, used_ns, executions;
	uint64_t created_ms, expires_ms; /* since 1970; expires 0: never */
	uint64_t adopted_ms; /* since when this front has it from one that was killed; 0: made here
			      */
	uint64_t aged_ns;    /* how old it was when this front began */
	uint64_t stop_until_ns;
	struct records records;      /* what was done in it lately */
	struct tail log;             /* the end of what was said in it */
	struct cell_usage before;    /* cumulative numbers when the last execution began */
	struct processes *processes; /* in the background; NULL: there never were any */
	struct egress *egress;       /* its way out; NULL: it never had one */
	struct workspace_store_call workspace_call; /* its tree is being opened */
	bool workspace_filling;                     /* and before that, brought from elsewhere */
	struct port *ports;                         /* that are open to the outside (ports.h) */
	struct jkernel *jupyter; /* its clients on the Jupyter wire; NULL: there never were any */
	struct code *code;       /* of one with servers, once it was needed (code/code.h) */
	uint64_t tool_calls;     /* that its code made */
	struct deferred reaper;
};

/* sandboxes_count() - For policy_now.count: what @owner runs now; NULL: all owners together. */
void sandboxes_count(const struct sandboxes *sandboxes, const char *owner, size_t *ret_sandboxes,
		     size_t *ret_executions);

struct sandbox *sandbox_find(struct sandboxes *sandboxes, const char *owner, const char *name);
/* sandboxes_of() - Those of @owner that have a name, in order, after @after; NULL: from the first
 * on. The caller frees the array. NULL without memory: then *ret_n is 0. */
struct sandbox **sandboxes_of(const struct sandboxes *sandboxes, const char *owner,
			      const char *after, size_t *ret_n);

/*
 * sandbox_create() - Make one. @name NULL: for one use; @spec NULL: the daemon's own limits. What
 * is in
 * @spec is the sandbox's afterwards. NULL with @ret filled: there are too many already.
 */
struct sandbox *sandbox_create(struct sandboxes *sandboxes, const char *owner, const char *name,
			       struct sandbox_spec *spec, struct refusal *ret);

/* sandbox_set_image() - Its cells are made from @g from now on. */
void sandbox_set_image(struct sandbox *s, struct image_use *g);

/* sandbox_restore() - One of a former daemon: it does not run, and only answers for its name. */
struct sandbox *sandbox_restore(struct sandboxes *sandboxes, const char *owner, const char *name,
				struct sandbox_spec *spec);

/*
 * sandbox_obtain() - Find the sandbox @name, or make it; one that was lost begins anew. @name NULL:
 * make one without a name. @image: as sandbox_spec_image() has it; one that exists must be of it.
 * NULL: of any image, and a new one of the daemon's own. Return: NULL with @ret filled.
 */
struct sandbox *sandbox_obtain(struct sandboxes *sandboxes, const char *owner, const char *name,
			       const char *image, struct refusal *ret);
/* sandbox_queue() - Queue @x in this one; it is refused when too many wait, or it does not run. */
void sandbox_queue(struct sandbox *s, struct execution *x);

void sandbox_enter(struct sandbox *s, struct entry *en);
void sandbox_leave(struct entry *en); /* idempotent; also while it still waits */

/* sandbox_end() - Refuse what waits, end what runs, remove the cell, forget the name. @why NULL: we
 * forget it, but its record stays. */
void sandbox_end(struct sandbox *s, const char *why);
/* sandbox_halt() - The same, but the name stays, with @state and @why. */
void sandbox_halt(struct sandbox *s, enum sandbox_state state, const char *why);
/* sandbox_stop() - SIGTERM to everything in it; sandbox_halt() when all is over or after @grace_ms.
 */
void sandbox_stop(struct sandbox *s, uint64_t grace_ms);
void sandbox_wait(struct sandbox *s, struct sandbox_waiter *w);
void sandbox_unwait(struct sandbox_waiter *w); /* idempotent */
/* sandbox_deadline() - Of one that is @expired: what whoever was in it is told. */
#define SANDBOX_LONGER                                                                             \
	"give it longer: timeout_seconds when it is made, or POST /v1/sandboxes/{name}/extend "    \
	"before its expires_at"
void sandbox_deadline(const struct sandbox *s, char *text, size_t size);
/* sandbox_expire() - Give it @seconds from now; 0: no end. */
void sandbox_expire(struct sandbox *s, uint64_t seconds);
const char *sandbox_state_name(enum sandbox_state s);

/* For execution.c: this one is done with (its done was called). */
void sandbox_executed(struct sandbox *s, struct execution *x);

/* ---- the next front (sandbox_keep.c) ------------------------------------------------------- */

/* sandbox_keep() - It runs from now on: leave what the next front needs. Idempotent, and not for
 * one without a name. */
void sandbox_keep(struct sandbox *s);
/* sandbox_keep_vars() - They are others now. */
void sandbox_keep_vars(struct sandbox *s);
/* sandbox_note() - Epoch, executions, cell or a kernel's state is another one. */
void sandbox_note(struct sandbox *s);
/* sandbox_keep_end() - It begins to end; sandbox_unkeep(): it has. */
void sandbox_keep_end(struct sandbox *s);
void sandbox_unkeep(struct sandbox *s);
/* sandbox_adopt() - One that was restored has this slot: take its cell and variables. NULL, or why
 * it can not be had. */
const char *sandbox_adopt(struct sandbox *s, int slot, const struct keeper_slot *was);
/* sandbox_resume() - One that was restored runs again. */
void sandbox_resume(struct sandbox *s);
/* sandbox_use() - This is its cell now. */
void sandbox_use(struct sandbox *s, struct cell *r);

/* sandbox_renew() - Its cell ends, with everything in it; it gets another when it needs one. Not
 * while code runs. */
void sandbox_renew(struct sandbox *s);

/* sandbox_no_cell() - For egress.c and workspaces: everybody who waits for the cell is told why it
 * can not be had. */
void sandbox_no_cell(struct sandbox *s, const struct refusal *why);

/* ---- between its files --------------------------------------------------------------------- */

/* sandbox_step() - See whether something can be done now. */
void sandbox_step(struct sandbox *s);
/*
 * sandbox_want_cell() - Limits, mounts or a workspace of its own: a cell made for it. Otherwise one
 * that is ready, or the next that will be. Idempotent while it waits; sandbox_step() or
 * sandbox_no_cell() follows.
 */
void sandbox_want_cell(struct sandbox *s);
/* sandbox_turn_out() - The cell is over; whoever is inside hears of it. */
void sandbox_turn_out(struct sandbox *s, const struct cell_usage *u);
/* sandbox_count() - One more that runs, or one less. Those that do not are only names: they take no
 * place. */
void sandbox_count(const struct sandbox *s, bool one_more);
void sandbox_unlist(struct sandbox *s); /* it has no name any more */
/* sandbox_forget_later() - It does not run: after a day its name is forgotten, too. */
void sandbox_forget_later(struct sandbox *s);

#endif
