/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox.c - Finds sandboxes, and drives the work in one: executions, one after another, and the
 * entries of other requests.
 *
 * sandbox_step() does all of it: if a request needs the cell and there is no cell, it gets one; it
 * lets in the entries that wait; and if no execution runs and one waits, it gets a kernel for its
 * language and runs it. Each of these steps may take a while and then calls sandbox_step() again.
 * Cells come from sandbox_cell.c; the beginning of a sandbox is in sandbox_life.c, its end in
 * sandbox_end.c.
 */
#include "front/sandbox/sandbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/list.h"
#include "front/cell/cell.h"
#include "front/cell/image_use.h"
#include "front/sandbox/audit.h"
#include "front/sandbox/command.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/hooks.h"
#include "front/sandbox/sandboxes.h"
#include "front/spec/judge.h"
#include "front/support/metrics.h"

#define STOPPED_HINT "remove it (DELETE /v1/sandboxes/{name}), then create it again"

/* ---- finding sandboxes --------------------------------------------------------------------- */

struct sandbox *sandbox_find(struct sandboxes *sandboxes, const char *owner, const char *name)
{
	for (struct sandbox *s = sandboxes->first; s; s = s->next)
		if (s->name[0] && strcmp(s->name, name) == 0 && strcmp(s->owner, owner) == 0)
			return s;
	return NULL;
}

static int by_name(const void *a, const void *b)
{
	return strcmp((*(struct sandbox *const *)a)->name, (*(struct sandbox *const *)b)->name);
}

struct sandbox **sandboxes_of(const struct sandboxes *sandboxes, const char *owner,
			      const char *after, size_t *ret_n)
{
	struct sandbox **all;
	size_t n = 0;

	for (const struct sandbox *s = sandboxes->first; s; s = s->next)
		n++;
	all = calloc(n + 1, sizeof(struct sandbox *));
	n = 0;
	for (struct sandbox *s = sandboxes->first; s && all; s = s->next)
		if (s->name[0] && strcmp(s->owner, owner) == 0 &&
		    (!after || strcmp(s->name, after) > 0))
			all[n++] = s;
	if (n > 0)
		qsort(all, n, sizeof(struct sandbox *), by_name);
	*ret_n = n;
	return all;
}

const char *sandbox_state_name(enum sandbox_state s)
{
	static const char *const names[] = { "running", "stopped", "lost" };

	return names[s];
}

void sandboxes_count(const struct sandboxes *sandboxes, const char *owner, size_t *ret_sandboxes,
		     size_t *ret_executions)
{
	*ret_sandboxes = *ret_executions = 0;
	for (const struct sandbox *s = sandboxes->first; s; s = s->next) {
		if (s->spec.fetcher || (owner && strcmp(s->owner, owner) != 0))
			continue;
		*ret_sandboxes += s->state == SANDBOX_RUNNING;
		*ret_executions += s->n_queued + commands_in(s);
	}
}

/* ---- entries ------------------------------------------------------------------------------- */

static void unlink_entry(struct entry *en)
{
	struct sandbox *s = en->sandbox;

	LIST_DROP(s->entries, en);
	*(en->inside ? &s->n_inside : &s->n_waiting) -= 1;
	en->sandbox = NULL;
	en->prev = en->next = NULL;
	en->inside = false;
}

/*
 * The first entry that is inside, or the first that waits. Functions of entries may add, remove and
 * free others, so the caller searches the list anew after each call.
 */
static struct entry *first_entry(const struct sandbox *s, bool inside)
{
	struct entry *en = s->entries;

	while (en && en->inside != inside)
		en = en->next;
	return en;
}

/* Does nothing while the sandbox is being stopped: its end refuses the requests. */
void sandbox_no_cell(struct sandbox *s, const struct refusal *why)
{
	struct entry *en;

	if (s->stopping)
		return;
	while ((en = first_entry(s, false))) {
		unlink_entry(en);
		en->refused(en, why);
	}
	if (s->running)
		return;
	if (s->head)
		execution_refuse_as(s->head, why);
	else
		sandbox_step(s);
}

/* ---- steps of the work --------------------------------------------------------------------- */

static void let_in(struct sandbox *s)
{
	struct entry *en;

	while (s->cell && (en = first_entry(s, false))) {
		en->inside = true;
		s->n_waiting--;
		s->n_inside++;
		en->in(en, s->cell);
	}
}

struct execution *sandbox_running(const struct sandbox *s)
{
	return s->running ? s->head : NULL;
}

static void run_next(struct sandbox *s, struct execution *x)
{
	struct kernel *kernel = &s->cell->kernels[x->language->id];
	struct refusal why;

	if (kernel->state == KERNEL_EMPTY)
		cell_start(s->cell, x->language);
	if (kernel->state != KERNEL_IDLE)
		return;
	if (audit_begin(s, x->id, x->language->name, x->code, x->code_len, x->timeout_ms, &why) <
	    0) {
		execution_refuse_as(x, &why);
		return;
	}
	x->begun = true;
	kernel->state = KERNEL_BUSY;
	kernel_idle(&kernel->pipes, false);
	s->sandboxes->hooks->packages.tell(s, kernel);
	s->running = true;
	s->executions++;
	sandbox_note(s);
	s->sandboxes->n_busy++;
	metric_set(G_SANDBOXES_BUSY, s->sandboxes->n_busy);
	metric_set(G_EXECUTIONS, s->sandboxes->n_busy);
	execution_run(x, kernel);
}

void sandbox_step(struct sandbox *s)
{
	/* While it is being stopped nothing begins, and its end refuses all requests that wait. */
	if (s->ending || s->stopping || s->state != SANDBOX_RUNNING)
		return;
	if (s->cell && cell_settling(s->cell)) /* for a moment, after the former front was killed */
		return;
	/* No request enters before the network access of the cell is installed. */
	if (s->cell && s->cell->sealed && !s->sandboxes->hooks->egress.ready(s)) {
		if (s->head || s->entries)
			timer_cancel(&s->idle_timer);
		s->sandboxes->hooks->egress.install(s);
		return;
	}
	if (s->cell && s->cell->sealed && s->n_waiting)
		let_in(s);
	if (s->running || s->ending)
		return;
	if (!s->head && !s->entries) {
		s->used_ns = clock_now_ns();
		if (!s->name[0])
			sandbox_end(s, "done");
		else
			timer_after(s->sandboxes->loop, &s->idle_timer,
				    s->spec.idle_ms * CLOCK_NS_PER_MS);
		return;
	}
	timer_cancel(&s->idle_timer);
	if (!s->cell && (s->head || s->n_waiting))
		sandbox_want_cell(s);
	else if (s->cell && s->cell->sealed && s->head)
		run_next(s, s->head);
}

void sandbox_queue(struct sandbox *s, struct execution *x)
{
	struct refusal why;

	if (s->state != SANDBOX_RUNNING || s->stopping) {
		execution_refuse(x, REFUSAL_CONFLICT, "sandbox_stopped", STOPPED_HINT, 0,
				 "the sandbox is %s: %s",
				 s->stopping ? "being stopped" : sandbox_state_name(s->state),
				 s->reason);
		return;
	}
	if (s->n_queued >= SANDBOX_QUEUE_MAX) {
		metric_add(M_REJECTED_BUSY, 1);
		execution_refuse(x, REFUSAL_TOO_MANY, "session_busy", NULL, SANDBOXES_RETRY_S,
				 "%u executions wait for this session already", SANDBOX_QUEUE_MAX);
		return;
	}
	if (!s->image->has_language[x->language->id]) {
		execution_no_language(x, s->image);
		sandbox_step(s);
		return;
	}
	if (!x->admitted &&
	    policy_queue(s->sandboxes->admission, s->owner, &x->timeout_ms, &why) < 0) {
		execution_refuse_as(x, &why);
		sandbox_step(s); /* a sandbox without a name was made for @x alone */
		return;
	}
	x->sandbox = s;
	x->next = NULL;
	*s->tail = x;
	s->tail = &x->next;
	s->n_queued++;
	s->sandboxes->n_queued++;
	metric_set(G_QUEUED, s->sandboxes->n_queued - s->sandboxes->n_busy);
	sandbox_step(s);
}

/* ---- entering and leaving ------------------------------------------------------------------ */

void sandbox_enter(struct sandbox *s, struct entry *en)
{
	struct refusal why;

	if (s->ending || s->stopping || s->state != SANDBOX_RUNNING) {
		(void)refusal_set(&why, REFUSAL_CONFLICT, "sandbox_stopped", NULL, STOPPED_HINT,
				  "the sandbox is %s: %s",
				  s->state == SANDBOX_RUNNING ? "being stopped" :
								sandbox_state_name(s->state),
				  s->reason);
		en->refused(en, &why);
		return;
	}
	en->sandbox = s;
	en->inside = false;
	LIST_PUSH(s->entries, en);
	s->n_waiting++;
	sandbox_step(s);
}

void sandbox_leave(struct entry *en)
{
	struct sandbox *s = en->sandbox;

	if (!s)
		return;
	unlink_entry(en);
	sandbox_step(s);
}

void sandbox_turn_out(struct sandbox *s, const struct cell_usage *u)
{
	struct entry *en;

	while ((en = first_entry(s, true))) {
		unlink_entry(en);
		en->gone(en, u);
	}
}

/*
 * The execution is over, and no listener is left: no kernel stays paused, and the idle one keeps
 * little.
 */
static void rest(struct cell *r, struct kernel *kernel)
{
	for (size_t i = 0; i < LANG_MAX_; i++)
		if (r->kernels[i].attached)
			kernel_pipes_pause(&r->kernels[i].pipes, false);
	if (kernel->state != KERNEL_BUSY)
		return;
	kernel->state = KERNEL_IDLE;
	kernel_idle(&kernel->pipes, true);
}

void sandbox_executed(struct sandbox *s, struct execution *x)
{
	if (s->head == x && s->running) {
		s->running = false;
		s->sandboxes->n_busy--;
		metric_set(G_SANDBOXES_BUSY, s->sandboxes->n_busy);
		metric_set(G_EXECUTIONS, s->sandboxes->n_busy);
		if (s->cell)
			rest(s->cell, &s->cell->kernels[x->language->id]);
		sandbox_note(s);
	}
	for (struct execution **at = &s->head; *at; at = &(*at)->next)
		if (*at == x) {
			*at = x->next;
			if (!*at)
				s->tail = at;
			s->n_queued--;
			s->sandboxes->n_queued--;
			break;
		}
	metric_set(G_QUEUED, s->sandboxes->n_queued - s->sandboxes->n_busy);
	sandbox_step(s);
}
