/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox_life.c - How sandboxes come to be and end: admission, names, deadlines, stopping.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "front/audit.h"
#include "front/execution.h"
#include "front/front.h"
#include "front/log.h"
#include "front/metrics.h"
#include "front/process.h"
#include "front/room.h"
#include "front/sandbox.h"
#include "front/stamp.h"

#define BUSY_RETRY_S 1u
#define STOP_STEP_NS (20 * CLOCK_NS_PER_MS)

struct sandbox *sandbox_find(struct front *f, const char *owner, const char *name)
{
	for (struct sandbox *s = f->sandboxes; s; s = s->next)
		if (s->name[0] && strcmp(s->name, name) == 0 && strcmp(s->owner, owner) == 0)
			return s;
	return NULL;
}

const char *sandbox_state_name(enum sandbox_state s)
{
	static const char *const names[] = { "running", "stopped", "lost" };

	return names[s];
}

/* ---- the beginning ------------------------------------------------------------------------------------ */

static void on_idle(struct timer *t)
{
	metric_add(M_REAPED_IDLE, 1);
	sandbox_end(t->arg, "it was idle for too long");
}

static void on_end(struct timer *t)
{
	sandbox_end(t->arg, "its time was over");
}

void sandbox_expire(struct sandbox *s, uint64_t seconds)
{
	s->end_timer.fn = on_end;
	s->end_timer.arg = s;
	s->expires_ms = seconds ? stamp_now_ms() + seconds * 1000 : 0;
	if (seconds)
		timer_set(&s->f->loop, &s->end_timer, s->f->loop.now_ns + seconds * CLOCK_NS_PER_S);
	else
		timer_cancel(&s->end_timer);
}

static struct sandbox *sandbox_new(struct front *f, const char *owner, const char *name,
				   struct sandbox_spec *spec)
{
	struct sandbox *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->f = f;
	execution_random_id(s->id);
	(void)snprintf(s->name, sizeof(s->name), "%s", name ? name : "");
	(void)snprintf(s->owner, sizeof(s->owner), "%s", owner);
	if (spec)
		s->spec = *spec;
	else
		sandbox_spec_default(f, &s->spec);
	s->tail = &s->head;
	s->created_ns = s->used_ns = clock_now_ns();
	s->created_ms = stamp_now_ms();
	s->idle_timer.fn = on_idle;
	s->idle_timer.arg = s;
	records_init(&s->records, &f->loop, &f->spools, &f->streams);
	s->next = f->sandboxes;
	if (s->next)
		s->next->prev = s;
	f->sandboxes = s;
	return s;
}

/* Those that do not run are only names: they take no place from those that do. */
static void count(struct front *f, bool one_more)
{
	if (one_more)
		f->n_sandboxes++;
	else
		f->n_sandboxes--;
	metric_set(G_SANDBOXES, f->n_sandboxes);
}

static void unlist(struct sandbox *s)
{
	if (s->prev)
		s->prev->next = s->next;
	else
		s->f->sandboxes = s->next;
	if (s->next)
		s->next->prev = s->prev;
}

static bool is_full(const struct front *f)
{
	return f->n_sandboxes >= f->config.max_sandboxes || f->n_queued >= FRONT_QUEUE_MAX;
}

static void refuse_busy(struct front *f, struct refusal *ret)
{
	uint64_t idle_s = f->config.idle_ms / 1000;

	for (const struct sandbox *s = f->sandboxes; s; s = s->next)
		if (s->head) /* something runs, and will be over sooner than anybody is idle for too long */
			idle_s = 1;
	metric_add(M_REJECTED_BUSY, 1);
	*ret = (struct refusal){ .status = 429,
				 .code = "busy",
				 .retry_after_s = idle_s > 5 ? 5 : (unsigned int)idle_s };
	(void)snprintf(ret->message, sizeof(ret->message),
		       "%zu sandboxes exist and %zu executions wait already; try again later",
		       f->n_sandboxes, f->n_queued);
}

struct sandbox *sandbox_create(struct front *f, const char *owner, const char *name,
			       struct sandbox_spec *spec, struct refusal *ret)
{
	if (is_full(f)) {
		refuse_busy(f, ret);
		return NULL;
	}
	struct sandbox *s = sandbox_new(f, owner, name, spec);

	if (!s) {
		*ret = (struct refusal){ .status = 503,
					 .code = "out_of_memory",
					 .retry_after_s = 1 };
		(void)snprintf(ret->message, sizeof(ret->message), "the daemon is out of memory");
		return NULL;
	}
	if (name && audit_created(s, ret) < 0) {
		unlist(s);
		free(s); /* the spec is still the caller's */
		return NULL;
	}
	count(f, true);
	if (s->spec.life_s)
		sandbox_expire(s, s->spec.life_s);
	return s;
}

/* ---- names of what does not run ------------------------------------------------------------------------- */

#define REMEMBER_NS (24 * 3600 * CLOCK_NS_PER_S)

static void on_forget(struct timer *t)
{
	sandbox_end(t->arg, "it did not run for a day");
}

static void forget_later(struct sandbox *s)
{
	s->end_timer.fn = on_forget;
	s->end_timer.arg = s;
	timer_set(&s->f->loop, &s->end_timer, s->f->loop.now_ns + REMEMBER_NS);
}

struct sandbox *sandbox_restore(struct front *f, const char *owner, const char *name,
				struct sandbox_spec *spec)
{
	struct sandbox *s = sandbox_new(f, owner, name, spec);

	if (s) {
		s->state = SANDBOX_LOST;
		forget_later(s);
	}
	return s;
}

/* ---- work ------------------------------------------------------------------------------------------------ */

/* Whoever just goes on with a session gets it, empty, and its epoch says so. */
static bool revive(struct sandbox *s, struct refusal *ret)
{
	if (is_full(s->f)) {
		refuse_busy(s->f, ret);
		return false;
	}
	timer_cancel(&s->end_timer);
	s->state = SANDBOX_RUNNING;
	s->reason[0] = '\0';
	s->epoch++;
	count(s->f, true);
	audit_changed(s);
	return true;
}

void sandbox_submit(struct front *f, const char *owner, const char *name, struct execution *x)
{
	struct sandbox *s = name ? sandbox_find(f, owner, name) : NULL;
	struct refusal why;

	if (!s)
		s = sandbox_create(f, owner, name, NULL, &why);
	else if (s->state == SANDBOX_LOST && !revive(s, &why))
		s = NULL;
	if (s)
		sandbox_queue(s, x);
	else
		execution_refuse(x, why.status, why.code, why.hint, why.retry_after_s, "%s",
				 why.message);
}

void sandbox_queue(struct sandbox *s, struct execution *x)
{
	if (s->state != SANDBOX_RUNNING || s->stopping) {
		execution_refuse(x, 409, "sandbox_stopped", NULL, 0, "the sandbox is %s: %s",
				 s->stopping ? "being stopped" : sandbox_state_name(s->state),
				 s->reason);
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
	s->f->n_queued++;
	metric_set(G_QUEUED, s->f->n_queued - s->f->n_busy);
	sandbox_step(s);
}

/* ---- the end ------------------------------------------------------------------------------------------- */

/* Whoever waits or runs is told, and the cell is gone. */
static void empty(struct sandbox *s, const char *message)
{
	static const struct cell_usage ended = { .end = CELL_END_CLIENT };
	struct refusal why = { .status = 409, .code = "session_ended" };

	timer_cancel(&s->idle_timer);
	timer_cancel(&s->want_timer);
	timer_cancel(&s->stop_timer);
	timer_cancel(&s->end_timer);
	pool_unwant(&s->f->pool, &s->want);
	(void)snprintf(why.message, sizeof(why.message), "%s", message);
	while (s->head)
		execution_refuse(s->head, why.status, why.code, NULL, 0, "%s", message);
	sandbox_turn_out(s, &ended);
	while (s->entries) {
		struct entry *en = s->entries;

		sandbox_leave(en);
		en->refused(en, &why);
	}
	if (s->room)
		room_end(s->room);
	s->room = NULL;
}

void sandbox_wait(struct sandbox *s, struct sandbox_waiter *w)
{
	w->sandbox = s;
	w->prev = NULL;
	w->next = s->waiters;
	if (w->next)
		w->next->prev = w;
	s->waiters = w;
}

void sandbox_unwait(struct sandbox_waiter *w)
{
	if (!w->sandbox)
		return;
	if (w->prev)
		w->prev->next = w->next;
	else
		w->sandbox->waiters = w->next;
	if (w->next)
		w->next->prev = w->prev;
	w->sandbox = NULL;
}

static void tell_waiters(struct sandbox *s)
{
	while (s->waiters) {
		struct sandbox_waiter *w = s->waiters;

		sandbox_unwait(w);
		w->over(w, s);
	}
}

static void reap(struct deferred *d)
{
	struct sandbox *s = d->arg;

	processes_free(s);
	records_free(&s->records);
	sandbox_spec_free(&s->spec);
	tail_free(&s->log);
	free(s);
}

void sandbox_end(struct sandbox *s, const char *why)
{
	struct front *f = s->f;

	if (s->ending)
		return;
	s->ending = true;
	if (s->name[0] && why)
		log_event(LOG_LEVEL_INFO, "session_end", F_STR("owner", s->owner),
			  F_STR("session", s->name), F_STR("why", why),
			  F_UINT("executions", s->executions));
	empty(s, "the sandbox was removed while the code waited or ran");
	tell_waiters(s);
	if (s->name[0] && why)
		audit_removed(s, why);
	unlist(s);
	if (s->state == SANDBOX_RUNNING)
		count(f, false);
	s->reaper.fn = reap;
	s->reaper.arg = s;
	loop_defer(&f->loop, &s->reaper);
}

void sandbox_halt(struct sandbox *s, enum sandbox_state state, const char *why)
{
	if (s->ending || s->state != SANDBOX_RUNNING)
		return;
	s->state = state;
	s->stopping = false;
	(void)snprintf(s->reason, sizeof(s->reason), "%s", why);
	log_event(LOG_LEVEL_INFO, "sandbox_halt", F_STR("owner", s->owner),
		  F_STR("sandbox", s->name), F_STR("state", sandbox_state_name(state)),
		  F_STR("why", why));
	empty(s, "the sandbox was stopped while the code waited or ran");
	count(s->f, false);
	forget_later(s);
	audit_changed(s);
	tell_waiters(s);
}

/* Whether anything that we know of still runs in it. */
static bool is_quiet(const struct sandbox *s)
{
	if (!s->room)
		return true;
	for (size_t i = 0; i < LANG_MAX_; i++)
		if (s->room->seats[i].state != SEAT_EMPTY)
			return false;
	return !s->room->commands;
}

static void on_stop_step(struct timer *t)
{
	struct sandbox *s = t->arg;

	if (is_quiet(s) || s->f->loop.now_ns >= s->stop_until_ns)
		sandbox_halt(s, SANDBOX_STOPPED, "stopped by its owner");
	else
		timer_set(&s->f->loop, t, s->f->loop.now_ns + STOP_STEP_NS);
}

void sandbox_stop(struct sandbox *s, uint64_t grace_ms)
{
	if (s->state != SANDBOX_RUNNING || s->stopping)
		return;
	s->stopping = true;
	s->stop_until_ns = s->f->loop.now_ns + grace_ms * CLOCK_NS_PER_MS;
	if (s->room)
		room_signal_all(s->room, SIGTERM);
	s->stop_timer.fn = on_stop_step;
	s->stop_timer.arg = s;
	timer_set(&s->f->loop, &s->stop_timer, s->f->loop.now_ns + STOP_STEP_NS);
}
