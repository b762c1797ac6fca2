/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox.c - What is done in one sandbox, and where its room and kernels come from.
 *
 * sandbox_step() is the whole of it: if somebody wants the cell and there is none, get one; let in who
 * waits; and if no execution runs and one waits, get it a kernel of its language and run it. Each of these
 * may take a while and then calls sandbox_step() again. Its beginning is in sandbox_life.c, its end in sandbox_end.c.
 */
#include "front/sandbox/sandbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "front/code/rpc.h"
#include "front/egress/egress.h"
#include "front/front.h"
#include "front/jupyter/jupyter.h"
#include "front/log.h"
#include "front/metrics.h"
#include "front/packages/packages.h"
#include "front/room/room.h"
#include "front/run/execution.h"
#include "front/sandbox/audit.h"
#include "front/workspaces/workspaces.h"

#define WANT_NS (30 * CLOCK_NS_PER_S)
#define BUSY_RETRY_S 1u

/* ---- the room's words ----------------------------------------------------------------------------- */

static struct execution *running(struct sandbox *s)
{
	return s->running ? s->head : NULL;
}

static void on_kernel_ready(struct room *r, struct seat *seat)
{
	(void)seat;
	sandbox_note(r->holder);
	sandbox_step(r->holder);
}

static void on_kernel_failed(struct room *r, struct seat *seat, bool missing, const char *message)
{
	struct sandbox *s = r->holder;
	struct execution *x = s->head;

	if (missing)
		r->image->has_language[seat->language->id] = false;
	/* Whoever wanted it may have been interrupted since, and another language's code be next. */
	if (!x || x->language != seat->language || s->stopping)
		return;
	if (missing) {
		execution_no_language(x, r->image);
	} else {
		execution_refuse(x, 503, "kernel_failed", NULL, 1,
				 "the %s kernel did not start: %s", seat->language->name, message);
	}
}

static void on_message(struct room *r, struct seat *seat, const char *type, json_t *m)
{
	struct sandbox *s = r->holder;
	struct execution *x = running(s);

	if (x && seat->language == x->language)
		execution_message(x, seat, type, m);
	else
		execution_stray(seat, type, m);
}

static void on_output(struct room *r, struct seat *seat, enum kernel_stream stream,
		      const char *data, size_t len)
{
	struct sandbox *s = r->holder;
	struct execution *x = running(s);

	metric_add(M_OUTPUT_BYTES, len);
	if (x) {
		execution_output(x, stream, data, len);
	} else if (s->name[0]) { /* of what an execution left behind */
		tail_add(&s->log, data, len);
		jupyter_late_output(s, seat->language, stream, data, len);
	}
}

static void on_drained(struct room *r, struct seat *seat)
{
	struct sandbox *s = r->holder;
	struct execution *x = running(s);

	if (x)
		rpc_drained(x, seat);
}

static void on_kernel_ended(struct room *r, struct seat *seat, int status)
{
	struct sandbox *s = r->holder;
	struct execution *x = running(s);

	s->epoch++;
	sandbox_note(s);
	jupyter_kernel_ended(s, seat->language);
	if (x && seat->language == x->language)
		execution_kernel_ended(x, seat, status);
	else
		sandbox_step(s); /* somebody may have waited for its end */
}

static void on_usage(struct room *r, const struct cell_usage *u)
{
	struct sandbox *s = r->holder;
	struct execution *x = running(s);

	if (x)
		execution_usage(x, u);
}

static void on_disk(struct room *r, const struct init_disk *d)
{
	struct sandbox *s = r->holder;
	struct execution *x = running(s);

	if (x)
		execution_disk(x, d);
}

/* What was in the cell is lost, and whoever was inside hears of it. */
static void leave_room(struct sandbox *s, struct room *r, const struct cell_usage *u)
{
	unsigned int lost = 0;

	/* Kernels that ended a moment before it have been counted, and have said so. */
	for (size_t i = 0; i < LANG_MAX_; i++)
		if (r->seats[i].state != SEAT_EMPTY)
			lost |= 1u << i;
	s->epoch += lost != 0;
	egress_drop(s);
	workspaces_left(s);
	s->room = NULL;
	for (size_t i = 0; i < LANG_MAX_; i++)
		if (lost & 1u << i)
			jupyter_kernel_ended(s, &languages[i]);
	memset(&s->before, 0, sizeof(s->before));
	sandbox_note(s);
	room_unkeep(r); /* before the sandbox has another one there */
	jupyter_room_gone(s);
	sandbox_turn_out(s, u);
}

void sandbox_renew(struct sandbox *s)
{
	static const struct cell_usage ended = { .end = CELL_END_CLIENT };
	struct room *r = s->room;

	if (!r || s->running)
		return;
	leave_room(s, r, &ended);
	room_end(r);
	sandbox_step(s);
}

/* The cell is over as a whole. The sandbox gets another when it needs one. */
static void on_gone(struct room *r, const struct cell_usage *u)
{
	struct sandbox *s = r->holder;
	struct execution *x = running(s);

	leave_room(s, r, u);
	if (x)
		execution_room_gone(x, u);
	room_end(r);
	if (!x)
		sandbox_step(s);
}

/* ---- the list of who entered -------------------------------------------------------------------------- */

static void unlink_entry(struct entry *en)
{
	struct sandbox *s = en->sandbox;

	if (en->prev)
		en->prev->next = en->next;
	else
		s->entries = en->next;
	if (en->next)
		en->next->prev = en->prev;
	*(en->inside ? &s->n_inside : &s->n_waiting) -= 1;
	en->sandbox = NULL;
	en->prev = en->next = NULL;
	en->inside = false;
}

/* The first of the list that is inside, or that is not. Their functions may let others in and out, and free
 * them: after each call the list is looked at anew. */
static struct entry *first_entry(const struct sandbox *s, bool inside)
{
	struct entry *en = s->entries;

	while (en && en->inside != inside)
		en = en->next;
	return en;
}

/* Everybody who waits for a room is told why there is none; not if it was stopped meanwhile: then its end tells. */
static void refuse_waiting(struct sandbox *s, const struct refusal *why)
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
		execution_refuse(s->head, why->status, why->code, why->hint, why->retry_after_s,
				 "%s", why->message);
	else
		sandbox_step(s);
}

void sandbox_no_room(struct sandbox *s, const struct refusal *why)
{
	refuse_waiting(s, why);
}

static void no_room(struct sandbox *s, int status, const char *code, const char *what,
		    const char *message)
{
	struct refusal why = { .status = status, .code = code, .retry_after_s = BUSY_RETRY_S };

	(void)snprintf(why.message, sizeof(why.message), "%s%.280s", what, message);
	refuse_waiting(s, &why);
}

static void on_failed(struct room *r, const char *message)
{
	struct sandbox *s = r->holder;

	egress_drop(s);
	s->room = NULL;
	room_end(r);
	no_room(s, 503, "sandbox_failed", "", message);
}

/* A room that was made for this sandbox alone. */
static void on_ready(struct room *r)
{
	struct sandbox *s = r->holder;

	room_keep(r, s->slot);
	sandbox_note(s);
	sandbox_step(s);
}

static const struct room_ops sandbox_ops = {
	.ready = on_ready,
	.failed = on_failed,
	.kernel_ready = on_kernel_ready,
	.kernel_failed = on_kernel_failed,
	.message = on_message,
	.output = on_output,
	.drained = on_drained,
	.kernel_ended = on_kernel_ended,
	.usage = on_usage,
	.disk = on_disk,
	.gone = on_gone,
};

/* ---- getting a room --------------------------------------------------------------------------------- */

void sandbox_use(struct sandbox *s, struct room *r)
{
	s->room = r;
	r->env = s->vars;
	room_hold(r, &sandbox_ops, s);
}

static void make_room(struct sandbox *s, bool python)
{
	struct err e = { 0 };

	s->room = room_make(s->image, &s->spec, python && !s->spec.fetcher, &sandbox_ops, s, &e);
	if (s->room)
		s->room->env = s->vars;
	else
		no_room(s, 503, "sandbox_failed", "no sandbox could be made: ", e.msg);
}

static void on_got(struct want *w, struct room *r)
{
	struct sandbox *s = w->arg;

	timer_cancel(&s->want_timer);
	/* Whatever happened while it waited: no cell with a mount that the sandbox may not have is given to it. */
	if (!mount_set_equal(&r->mounts, &s->spec.mounts.set)) {
		room_end(r);
		make_room(s, w->python);
		return;
	}
	sandbox_use(s, r);
	room_keep(r, s->slot);
	sandbox_note(s);
	sandbox_step(s);
}

static void on_not_got(struct want *w, const char *message)
{
	struct sandbox *s = w->arg;

	timer_cancel(&s->want_timer);
	no_room(s, 503, "sandbox_failed", "no sandbox could be made: ", message);
}

static void on_want_late(struct timer *t)
{
	struct sandbox *s = t->arg;

	pool_unwant(&s->image->pool, &s->want);
	metric_add(M_REJECTED_BUSY, 1);
	no_room(s, 429, "busy", "no sandbox became free in time; try again later", "");
}

/* Limits, mounts or a workspace of its own: a room made for it. Otherwise one that is ready, or the next that will be. */
static void want_room(struct sandbox *s)
{
	bool python = !s->head || s->head->language->id == LANG_PYTHON;

	if (s->want.queued || !workspaces_ready(s))
		return;
	if (s->spec.own_limits || s->spec.workspace.name[0] ||
	    !mount_set_equal(&s->spec.mounts.set, &s->f->mounts.pooled)) {
		make_room(s, python);
		return;
	}
	s->want.python = python;
	s->want.got = on_got;
	s->want.failed = on_not_got;
	s->want.arg = s;
	s->want_timer.fn = on_want_late;
	s->want_timer.arg = s;
	timer_set(&s->f->loop, &s->want_timer, s->f->loop.now_ns + WANT_NS);
	pool_want(&s->image->pool, &s->want);
}

/* ---- the queue -------------------------------------------------------------------------------------- */

static void let_in(struct sandbox *s)
{
	struct entry *en;

	while (s->room && (en = first_entry(s, false))) {
		en->inside = true;
		s->n_waiting--;
		s->n_inside++;
		en->in(en, s->room);
	}
}

static void run_next(struct sandbox *s, struct execution *x)
{
	struct seat *seat = &s->room->seats[x->language->id];
	struct refusal why;

	if (seat->state == SEAT_EMPTY)
		room_start(s->room, x->language);
	if (seat->state != SEAT_IDLE)
		return;
	if (audit_begin(s, x->id, x->language->name, x->code, x->code_len, x->timeout_ms, &why) <
	    0) {
		execution_refuse(x, why.status, why.code, why.hint, why.retry_after_s, "%s",
				 why.message);
		return;
	}
	x->begun = true;
	seat->state = SEAT_BUSY;
	kernel_idle(&seat->kernel, false);
	packages_tell(s, seat);
	s->running = true;
	s->executions++;
	sandbox_note(s);
	s->f->n_busy++;
	metric_set(G_SANDBOXES_BUSY, s->f->n_busy);
	metric_set(G_EXECUTIONS, s->f->n_busy);
	execution_run(x, seat);
}

void sandbox_step(struct sandbox *s)
{
	/* While it is being stopped nothing begins, and whoever waits hears of its end. */
	if (s->ending || s->stopping || s->state != SANDBOX_RUNNING)
		return;
	if (s->room && room_settling(s->room)) /* a moment, after the front before us was killed */
		return;
	if (s->room && s->room->sealed &&
	    !egress_ready(s)) { /* nobody is let in before it is there */
		if (s->head || s->entries)
			timer_cancel(&s->idle_timer);
		egress_install(s);
		return;
	}
	if (s->room && s->room->sealed && s->n_waiting)
		let_in(s);
	if (s->running || s->ending)
		return;
	if (!s->head && !s->entries) {
		s->used_ns = clock_now_ns();
		if (!s->name[0])
			sandbox_end(s, "done");
		else
			timer_set(&s->f->loop, &s->idle_timer,
				  s->f->loop.now_ns + s->spec.idle_ms * CLOCK_NS_PER_MS);
		return;
	}
	timer_cancel(&s->idle_timer);
	if (!s->room && (s->head || s->n_waiting))
		want_room(s);
	else if (s->room && s->room->sealed && s->head)
		run_next(s, s->head);
}

/* ---- whoever is inside -------------------------------------------------------------------------------- */

void sandbox_enter(struct sandbox *s, struct entry *en)
{
	struct refusal why = { .status = 409, .code = "sandbox_stopped" };

	if (s->ending || s->stopping || s->state != SANDBOX_RUNNING) {
		(void)snprintf(why.message, sizeof(why.message), "the sandbox is %s: %s",
			       s->state == SANDBOX_RUNNING ? "being stopped" :
							     sandbox_state_name(s->state),
			       s->reason);
		en->refused(en, &why);
		return;
	}
	en->sandbox = s;
	en->inside = false;
	en->prev = NULL;
	en->next = s->entries;
	if (en->next)
		en->next->prev = en;
	s->entries = en;
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

/* Nobody listens any more: nothing is held back for anybody, and little is kept. */
static void rest(struct room *r, struct seat *seat)
{
	for (size_t i = 0; i < LANG_MAX_; i++)
		if (r->seats[i].attached)
			kernel_pause(&r->seats[i].kernel, false);
	if (seat->state != SEAT_BUSY)
		return;
	seat->state = SEAT_IDLE;
	kernel_idle(&seat->kernel, true);
}

void sandbox_executed(struct sandbox *s, struct execution *x)
{
	if (s->head == x && s->running) {
		s->running = false;
		s->f->n_busy--;
		metric_set(G_SANDBOXES_BUSY, s->f->n_busy);
		metric_set(G_EXECUTIONS, s->f->n_busy);
		if (s->room)
			rest(s->room, &s->room->seats[x->language->id]);
		sandbox_note(s);
	}
	for (struct execution **at = &s->head; *at; at = &(*at)->next)
		if (*at == x) {
			*at = x->next;
			if (!*at)
				s->tail = at;
			s->n_queued--;
			s->f->n_queued--;
			break;
		}
	metric_set(G_QUEUED, s->f->n_queued - s->f->n_busy);
	sandbox_step(s);
}
