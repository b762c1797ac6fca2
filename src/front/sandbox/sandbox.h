/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox.h - A sandbox, as a client holds it: a name, an owner, a spec, a cell, and the work in
 * it.
 *
 * A sandbox without a name lives for one execution. A named sandbox lives until it was idle for too
 * long, reaches its deadline, or is removed. Its cell may be replaced (running out of memory ends
 * the cell as a whole), which its epoch shows. A sandbox that was stopped, or lost with the daemon
 * that held it, is a record: it keeps its name until it is removed. A name belongs to its owner:
 * for other owners it does not exist.
 *
 * Two kinds of work happen in a sandbox: executions, one after another, in kernels; and everything
 * else (commands, file calls) side by side, by requests that have entered.
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
struct tools_port;

#define SANDBOX_NAME_MAX 64
#define SANDBOX_QUEUE_MAX 32u

enum sandbox_state { SANDBOX_RUNNING, SANDBOX_STOPPED, SANDBOX_LOST };

/*
 * A request that needs the cell. The struct belongs to the caller, and is zero but for arg and the
 * functions; exactly one of in and refused is called, perhaps at once. After in, the sandbox counts
 * as used until sandbox_leave(), or until gone, which is called if the cell ends first: by then the
 * entry has left.
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

/*
 * A request that waits for the end of the sandbox. When that does not run any more, over is called
 * once; by then the waiter has left the list.
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
	/* A later sandbox of the same name has another id. */
	char id[33];
	char name[SANDBOX_NAME_MAX + 1]; /* empty: for one execution */
	char owner[OWNER_MAX];
	struct sandbox_spec spec;
	struct image_use *image; /* of its cells; held */
	json_t *vars; /* environment of everything in it: spec.env and secrets; NULL: empty */
	enum sandbox_state state;
	char reason[160]; /* why it is not running */
	int slot;         /* in the keeper's table; -1: it is not stored there */
	struct cell *cell;
	struct cell_want cell_want; /* of a cell that is made for it alone */
	struct want want;
	struct timer want_timer, idle_timer, end_timer, stop_timer;
	struct execution *head, **tail; /* head is the execution that runs or is next */
	size_t n_queued;
	struct entry *entries; /* inside, or waiting for a cell */
	size_t n_inside, n_waiting;
	struct sandbox_waiter *waiters;
	bool running, ending, stopping;
	bool expired; /* it ends because it has reached its deadline */
	uint32_t epoch;
	uint64_t created_ns, used_ns, executions;
	uint64_t created_ms, expires_ms; /* since 1970; expires 0: never */
	/* When this front took it over from one that was killed; 0: it did not. */
	uint64_t adopted_ms;
	uint64_t aged_ns; /* its age when this front began */
	uint64_t stop_until_ns;
	struct records records;      /* of recent executions */
	struct tail log;             /* the end of the output of its kernels */
	struct cell_usage before;    /* cumulative usage of the cell at the last execution */
	struct processes *processes; /* in the background; NULL: there never were any */
	struct egress *egress;       /* its network access; NULL: it never had any */
	struct tools_port *tools;    /* where its programs request packages; or NULL */
	struct workspace_store_call workspace_call; /* its tree is being opened */
	/* Before that: its tree is being filled from elsewhere. */
	bool workspace_filling;
	/* Ports that are open to the outside (ports/ports.h). */
	struct port *ports;
	struct jkernel *jupyter; /* its clients on the Jupyter wire; NULL: there never were any */
	/* For a sandbox with servers, after the first use (tool_calls/code.h). */
	struct code *code;
	uint64_t tool_calls; /* made by its code */
	struct deferred reaper;
};

/*
 * sandboxes_count() - Count the sandboxes and executions that @owner runs now, for
 * policy_now.count. @owner NULL: all owners together.
 */
void sandboxes_count(const struct sandboxes *sandboxes, const char *owner, size_t *ret_sandboxes,
		     size_t *ret_executions);

/* sandbox_find() - The sandbox of this owner and name, in any state; NULL: not found. */
struct sandbox *sandbox_find(struct sandboxes *sandboxes, const char *owner, const char *name);
/*
 * sandboxes_of() - The sandboxes of @owner that have a name, sorted by it, after the name @after;
 * NULL: from the first on. The caller frees the array. NULL without memory: then *ret_n is 0.
 */
struct sandbox **sandboxes_of(const struct sandboxes *sandboxes, const char *owner,
			      const char *after, size_t *ret_n);

/*
 * sandbox_create() - Make a sandbox. @name NULL: for one use. @spec NULL: the daemon's own limits.
 * On success the sandbox owns the content of @spec. NULL with @ret filled: it is refused, and the
 * content of @spec is still the caller's.
 */
struct sandbox *sandbox_create(struct sandboxes *sandboxes, const char *owner, const char *name,
			       struct sandbox_spec *spec, struct refusal *ret);

/* sandbox_set_image() - Make its cells from @g from now on. */
void sandbox_set_image(struct sandbox *s, struct image_use *g);

/*
 * sandbox_restore() - Make a sandbox of a former daemon's record: it does not run, and only keeps
 * its name.
 */
struct sandbox *sandbox_restore(struct sandboxes *sandboxes, const char *owner, const char *name,
				struct sandbox_spec *spec);

/*
 * sandbox_obtain() - Find the sandbox @name, or make it; a lost one begins anew. @name NULL: make
 * one without a name. @asked: `image` and `servers` of a SandboxSpec, both optional; an existing
 * sandbox must have what is named. NULL: nothing is. Return: the sandbox, or NULL with @ret filled.
 */
struct sandbox *sandbox_obtain(struct sandboxes *sandboxes, const char *owner, const char *name,
			       const json_t *asked, struct refusal *ret);
/* sandbox_queue() - Queue @x, which is refused if too many wait, or if the sandbox does not run. */
void sandbox_queue(struct sandbox *s, struct execution *x);

/* sandbox_enter() - Let a request into the cell, when there is one: see struct entry. */
void sandbox_enter(struct sandbox *s, struct entry *en);
void sandbox_leave(struct entry *en); /* idempotent; also for an entry that still waits */

/*
 * sandbox_end() - Refuse requests that wait, end those that run, end the cell, remove the name.
 * @why NULL: only the front forgets the sandbox, and its record stays.
 */
void sandbox_end(struct sandbox *s, const char *why);
/* sandbox_halt() - The same, but keep the name, with @state and @why. */
void sandbox_halt(struct sandbox *s, enum sandbox_state state, const char *why);
/*
 * sandbox_stop() - Send SIGTERM to everything in it; sandbox_halt() when all has ended or after
 * @grace_ms.
 */
void sandbox_stop(struct sandbox *s, uint64_t grace_ms);
/* sandbox_wait() - Call w->over when the sandbox does not run any more. */
void sandbox_wait(struct sandbox *s, struct sandbox_waiter *w);
void sandbox_unwait(struct sandbox_waiter *w); /* idempotent */
/*
 * sandbox_deadline() - The message for clients whose work ended because the sandbox has expired.
 * SANDBOX_LONGER is the hint for it.
 */
#define SANDBOX_LONGER                                                                             \
	"give it longer: timeout_seconds when it is made, or POST /v1/sandboxes/{name}/extend "    \
	"before its expires_at"
void sandbox_deadline(const struct sandbox *s, char *text, size_t size);
/* sandbox_expire() - Set its deadline @seconds from now; 0: no deadline. */
void sandbox_expire(struct sandbox *s, uint64_t seconds);
const char *sandbox_state_name(enum sandbox_state s);

/*
 * sandbox_executed() - For execution.c: remove @x, whose done was called, from the queue, and go
 * on.
 */
void sandbox_executed(struct sandbox *s, struct execution *x);

/* ---- state for the next front (sandbox_keep.c) --------------------------------------------- */

/*
 * sandbox_keep() - Store with the keeper what the next front needs of a sandbox that runs from now
 * on. Idempotent; does nothing without a name.
 */
void sandbox_keep(struct sandbox *s);
/* sandbox_keep_vars() - Store its variables, after a change. */
void sandbox_keep_vars(struct sandbox *s);
/*
 * sandbox_note() - Store its epoch, executions, cell and the states of its kernels, after a change.
 */
void sandbox_note(struct sandbox *s);
/* sandbox_keep_end() - Mark it as ending. sandbox_unkeep() - Remove it, after its end. */
void sandbox_keep_end(struct sandbox *s);
void sandbox_unkeep(struct sandbox *s);
/*
 * sandbox_adopt() - Take over the cell and variables of a restored sandbox from its slot. NULL, or
 * the reason why it cannot be adopted.
 */
const char *sandbox_adopt(struct sandbox *s, int slot, const struct keeper_slot *was);
/* sandbox_resume() - Let a restored sandbox run again. */
void sandbox_resume(struct sandbox *s);
/* sandbox_use() - Make @r its cell. */
void sandbox_use(struct sandbox *s, struct cell *r);

/*
 * sandbox_renew() - End its cell, with everything in it; it gets another when it needs one. Does
 * nothing while code runs.
 */
void sandbox_renew(struct sandbox *s);

/*
 * sandbox_no_cell() - The cell cannot be had: refuse the requests that wait for it, with @why. Also
 * for egress and workspaces.
 */
void sandbox_no_cell(struct sandbox *s, const struct refusal *why);

/* ---- for the files of this directory ------------------------------------------------------- */

/*
 * sandbox_step() - Do what can be done now: get a cell, let requests in, run the next execution, or
 * end.
 */
void sandbox_step(struct sandbox *s);
/* sandbox_running() - The execution whose code the kernel has; or NULL. */
struct execution *sandbox_running(const struct sandbox *s);
/*
 * sandbox_want_cell() - Get a cell. A sandbox with limits, mounts or a workspace of its own gets a
 * cell that is made for it; others get one of the pool, now or when it is ready. Idempotent while
 * it waits; sandbox_step() or sandbox_no_cell() follows.
 */
void sandbox_want_cell(struct sandbox *s);
/* sandbox_turn_out() - The cell is over: call gone of each entry that is inside. */
void sandbox_turn_out(struct sandbox *s, const struct cell_usage *u);
/*
 * sandbox_count() - Count one sandbox more that runs, or one less. Those that do not run are only
 * names, and do not count.
 */
void sandbox_count(const struct sandbox *s, bool one_more);
void sandbox_unlist(struct sandbox *s); /* remove it from the list: it has no name any more */
/* sandbox_forget_later() - It does not run: remove its name, too, after a day. */
void sandbox_forget_later(struct sandbox *s);

#endif
