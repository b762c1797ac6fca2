/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox.c - What is done in one sandbox, and where its room and kernels come from.
 *
 * sandbox_step() is the whole of it: if somebody wants the cell and there is none, get one; let in who
 * waits; and if no execution runs and one waits, get it a kernel of its language and run it. Each of these
 * may take a while and then calls sandbox_step() again. Beginning and end are in sandbox_life.c.
 */
#include "front/sandbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "front/audit.h"
#include "front/execution.h"
#include "front/front.h"
#include "front/log.h"
#include "front/metrics.h"
#include "front/room.h"

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
	sandbox_step(r->holder);
}

static void list_languages(const struct front *f, char *text, size_t size)
{
	size_t at = 0;

	text[0] = '\0';
	for (size_t i = 0; i < LANG_MAX_; i++)
		if (f->has_language[i] && at < size)
			at += (size_t)snprintf(text + at, size - at, "%s%s", at ? ", " : "",
					       languages[i].name);
}

static void on_kernel_failed(struct room *r, struct seat *seat, bool missing, const char *message)
{
	struct sandbox *s = r->holder;
	struct execution *x = s->head;
	char there[128];

	if (missing)
		r->f->has_language[seat->language->id] = false;
	/* Whoever wanted it may have been interrupted since, and another language's code be next. */
	if (!x || x->language != seat->language)
		return;
	if (missing) {
		list_languages(r->f, there, sizeof(there));
		execution_refuse(x, 422, "language_unavailable", NULL, 0,
				 "this image has no %s (%s was not found); there are: %s",
				 seat->language->name, seat->language->program, there);
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

	(void)seat;
	metric_add(M_OUTPUT_BYTES, len);
	if (x)
		execution_output(x, stream, data, len);
}

static void on_kernel_ended(struct room *r, struct seat *seat, int status)
{
	struct sandbox *s = r->holder;
	struct execution *x = running(s);

	s->epoch++;
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

/* The cell is over as a whole. What was in it is lost; the sandbox gets another when it needs one. */
static void on_gone(struct room *r, const struct cell_usage *u)
{
	struct sandbox *s = r->holder;
	struct execution *x = running(s);

	/* Kernels that ended a moment before it have been counted. */
	for (size_t i = 0; i < LANG_MAX_; i++)
		if (r->seats[i].state != SEAT_EMPTY) {
			s->epoch++;
			break;
		}
	s->room = NULL;
	memset(&s->before, 0, sizeof(s->before));
	sandbox_turn_out(s, u);
	if (x)
		execution_room_gone(x, u);
	room_end(r);
	if (!x)
		sandbox_step(s);
}

/* Everybody who waits for a room is told why there is none. */
static void refuse_waiting(struct sandbox *s, const struct refusal *why)
{
	struct entry *next;

	for (struct entry *en = s->entries; en; en = next) {
		next = en->next;
		if (en->inside)
			continue;
		sandbox_leave(en);
		en->refused(en, why);
	}
	if (s->head)
		execution_refuse(s->head, why->status, why->code, why->hint, why->retry_after_s,
				 "%s", why->message);
}

static void no_room(struct sandbox *s, int status, const char *code, const char *what,
		    const char *message)
{
	struct refusal why = { .status = status, .code = code, .retry_after_s = BUSY_RETRY_S };

	(void)snprintf(why.message, sizeof(why.message), "%s%s", what, message);
	refuse_waiting(s, &why);
}

static void on_failed(struct room *r, const char *message)
{
	struct sandbox *s = r->holder;

	s->room = NULL;
	room_end(r);
	no_room(s, 503, "sandbox_failed", "", message);
}

/* A room that was made for this sandbox alone. */
static void on_ready(struct room *r)
{
	sandbox_step(r->holder);
}

static const struct room_ops sandbox_ops = {
	.ready = on_ready,
	.failed = on_failed,
	.kernel_ready = on_kernel_ready,
	.kernel_failed = on_kernel_failed,
	.message = on_message,
	.output = on_output,
	.kernel_ended = on_kernel_ended,
	.usage = on_usage,
	.disk = on_disk,
	.gone = on_gone,
};

/* ---- getting a room --------------------------------------------------------------------------------- */

static void on_got(struct want *w, struct room *r)
{
	struct sandbox *s = w->arg;

	timer_cancel(&s->want_timer);
	s->room = r;
	r->env = s->spec.env;
	room_hold(r, &sandbox_ops, s);
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

	pool_unwant(&s->f->pool, &s->want);
	metric_add(M_REJECTED_BUSY, 1);
	no_room(s, 429, "busy", "no sandbox became free in time; try again later", "");
}

/* Limits of its own: a room made for it. Otherwise one that is ready, or the next that will be. */
static void want_room(struct sandbox *s)
{
	bool python = !s->head || s->head->language->id == LANG_PYTHON;

	if (s->want.queued)
		return;
	if (s->spec.own_limits) {
		s->room = room_make(s->f, &s->spec.limits, python, &sandbox_ops, s);
		if (s->room)
			s->room->env = s->spec.env;
		else
			no_room(s, 503, "sandbox_failed", "the warden could not be asked", "");
		return;
	}
	s->want.python = python;
	s->want.got = on_got;
	s->want.failed = on_not_got;
	s->want.arg = s;
	s->want_timer.fn = on_want_late;
	s->want_timer.arg = s;
	timer_set(&s->f->loop, &s->want_timer, s->f->loop.now_ns + WANT_NS);
	pool_want(&s->f->pool, &s->want);
}

/* ---- the queue -------------------------------------------------------------------------------------- */

static void let_in(struct sandbox *s)
{
	struct entry *next;

	for (struct entry *en = s->entries; en && s->room; en = next) {
		next = en->next;
		if (en->inside)
			continue;
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
	seat->state = SEAT_BUSY;
	kernel_idle(&seat->kernel, false);
	s->running = true;
	s->executions++;
	s->f->n_busy++;
	metric_set(G_SANDBOXES_BUSY, s->f->n_busy);
	metric_set(G_EXECUTIONS, s->f->n_busy);
	execution_run(x, seat);
}

void sandbox_step(struct sandbox *s)
{
	if (s->ending || s->state != SANDBOX_RUNNING)
		return;
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
	struct entry *en = s->entries;

	/* A function may let others leave: begin anew after each. */
	while (en) {
		if (!en->inside) {
			en = en->next;
			continue;
		}
		unlink_entry(en);
		en->gone(en, u);
		en = s->entries;
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
