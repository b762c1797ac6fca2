/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox.c - The queue of one sandbox, and where its room and kernels come from.
 *
 * step() is the whole of it: if nothing runs and something waits, get what it needs, in order: a
 * room, a kernel of its language, and then run it. Each of these may take a while and then calls
 * step() again.
 */
#include "front/sandbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "front/execution.h"
#include "front/front.h"
#include "front/log.h"
#include "front/metrics.h"
#include "front/room.h"

#define WANT_NS (30 * CLOCK_NS_PER_S)
#define BUSY_RETRY_S 1u

static void step(struct sandbox *s);

/* ---- the room's words ----------------------------------------------------------------------------- */

static struct execution *running(struct sandbox *s)
{
	return s->running ? s->head : NULL;
}

static void on_kernel_ready(struct room *r, struct seat *seat)
{
	(void)seat;
	step(r->holder);
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
		step(s); /* somebody may have waited for its end */
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
	if (x)
		execution_room_gone(x, u);
	room_end(r);
	if (!x)
		step(s);
}

static void on_failed(struct room *r, const char *message)
{
	struct sandbox *s = r->holder;

	s->room = NULL;
	room_end(r);
	if (s->head)
		execution_refuse(s->head, 503, "sandbox_failed", NULL, 1, "%s", message);
}

static const struct room_ops sandbox_ops = {
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
	room_hold(r, &sandbox_ops, s);
	step(s);
}

static void on_not_got(struct want *w, const char *message)
{
	struct sandbox *s = w->arg;

	timer_cancel(&s->want_timer);
	if (s->head)
		execution_refuse(s->head, 503, "sandbox_failed", NULL, 1,
				 "no sandbox could be made: %s", message);
}

static void on_want_late(struct timer *t)
{
	struct sandbox *s = t->arg;

	pool_unwant(&s->f->pool, &s->want);
	metric_add(M_REJECTED_BUSY, 1);
	if (s->head)
		execution_refuse(s->head, 429, "busy", NULL, BUSY_RETRY_S,
				 "no sandbox became free within %llu s; try again later",
				 (unsigned long long)(WANT_NS / CLOCK_NS_PER_S));
}

static void want_room(struct sandbox *s)
{
	if (s->want.queued)
		return;
	s->want.python = s->head->language->id == LANG_PYTHON;
	s->want.got = on_got;
	s->want.failed = on_not_got;
	s->want.arg = s;
	s->want_timer.fn = on_want_late;
	s->want_timer.arg = s;
	timer_set(&s->f->loop, &s->want_timer, s->f->loop.now_ns + WANT_NS);
	pool_want(&s->f->pool, &s->want);
}

/* ---- the queue -------------------------------------------------------------------------------------- */

static void on_idle(struct timer *t)
{
	struct sandbox *s = t->arg;

	metric_add(M_REAPED_IDLE, 1);
	sandbox_end(s, "it was idle for too long");
}

static void step(struct sandbox *s)
{
	struct execution *x = s->head;

	if (s->ending || s->running)
		return;
	if (!x) {
		s->used_ns = clock_now_ns();
		if (!s->name[0])
			sandbox_end(s, "done");
		else
			timer_set(&s->f->loop, &s->idle_timer,
				  s->f->loop.now_ns + s->f->config.idle_ms * CLOCK_NS_PER_MS);
		return;
	}
	timer_cancel(&s->idle_timer);
	if (!s->room) {
		want_room(s);
		return;
	}
	struct seat *seat = &s->room->seats[x->language->id];

	if (seat->state == SEAT_EMPTY)
		room_start(s->room, x->language);
	if (seat->state != SEAT_IDLE)
		return;
	seat->state = SEAT_BUSY;
	kernel_idle(&seat->kernel, false);
	s->running = true;
	s->executions++;
	s->f->n_busy++;
	metric_set(G_SANDBOXES_BUSY, s->f->n_busy);
	metric_set(G_EXECUTIONS, s->f->n_busy);
	execution_run(x, seat);
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
	step(s);
}

/* ---- life ------------------------------------------------------------------------------------------- */

struct sandbox *sandbox_find(struct front *f, const char *owner, const char *name)
{
	for (struct sandbox *s = f->sandboxes; s; s = s->next)
		if (s->name[0] && strcmp(s->name, name) == 0 && strcmp(s->owner, owner) == 0)
			return s;
	return NULL;
}

static struct sandbox *sandbox_new(struct front *f, const char *owner, const char *name)
{
	struct sandbox *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->f = f;
	(void)snprintf(s->name, sizeof(s->name), "%s", name ? name : "");
	(void)snprintf(s->owner, sizeof(s->owner), "%s", owner);
	s->tail = &s->head;
	s->created_ns = s->used_ns = clock_now_ns();
	s->idle_timer.fn = on_idle;
	s->idle_timer.arg = s;
	s->next = f->sandboxes;
	if (s->next)
		s->next->prev = s;
	f->sandboxes = s;
	f->n_sandboxes++;
	metric_set(G_SANDBOXES, f->n_sandboxes);
	return s;
}

static void reap(struct deferred *d)
{
	free(d->arg);
}

void sandbox_end(struct sandbox *s, const char *why)
{
	struct front *f = s->f;

	if (s->ending)
		return;
	s->ending = true;
	if (s->name[0])
		log_event(LOG_LEVEL_INFO, "session_end", F_STR("owner", s->owner),
			  F_STR("session", s->name), F_STR("why", why),
			  F_UINT("executions", s->executions));
	timer_cancel(&s->idle_timer);
	timer_cancel(&s->want_timer);
	pool_unwant(&f->pool, &s->want);
	while (s->head)
		execution_refuse(s->head, 409, "session_ended", NULL, 0,
				 "the sandbox was removed while the code waited or ran");
	if (s->room)
		room_end(s->room);
	s->room = NULL;
	if (s->prev)
		s->prev->next = s->next;
	else
		f->sandboxes = s->next;
	if (s->next)
		s->next->prev = s->prev;
	f->n_sandboxes--;
	metric_set(G_SANDBOXES, f->n_sandboxes);
	s->reaper.fn = reap;
	s->reaper.arg = s;
	loop_defer(&f->loop, &s->reaper);
}

/* The sandbox that was idle for longest, to make room; NULL when all are in use. */
static struct sandbox *longest_idle(struct front *f)
{
	struct sandbox *oldest = NULL;

	for (struct sandbox *s = f->sandboxes; s; s = s->next)
		if (!s->head && (!oldest || s->used_ns < oldest->used_ns))
			oldest = s;
	return oldest;
}

void sandbox_submit(struct front *f, const char *owner, const char *name, struct execution *x)
{
	struct sandbox *s = name ? sandbox_find(f, owner, name) : NULL;

	if (!s && (f->n_sandboxes >= f->config.max_sandboxes || f->n_queued >= FRONT_QUEUE_MAX)) {
		const struct sandbox *idle = longest_idle(f);
		uint64_t idle_s = idle ? f->config.idle_ms / 1000 : 1;

		metric_add(M_REJECTED_BUSY, 1);
		execution_refuse(
			x, 429, "busy", NULL, idle_s > 5 ? 5 : (unsigned int)idle_s,
			"%zu sandboxes exist and %zu executions wait already; try again later",
			f->n_sandboxes, f->n_queued);
		return;
	}
	if (!s)
		s = sandbox_new(f, owner, name);
	if (!s) {
		execution_refuse(x, 503, "out_of_memory", NULL, 1, "the daemon is out of memory");
		return;
	}
	if (s->n_queued >= SANDBOX_QUEUE_MAX) {
		metric_add(M_REJECTED_BUSY, 1);
		execution_refuse(x, 429, "session_busy", NULL, BUSY_RETRY_S,
				 "%u executions wait for this session already", SANDBOX_QUEUE_MAX);
		return;
	}
	x->sandbox = s;
	x->next = NULL;
	*s->tail = x;
	s->tail = &x->next;
	s->n_queued++;
	f->n_queued++;
	metric_set(G_QUEUED, f->n_queued - f->n_busy);
	step(s);
}
