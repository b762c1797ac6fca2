/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox_life.c - How sandboxes come to be and end: admission, names, deadlines, stopping.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "front/code/code.h"
#include "front/egress/egress.h"
#include "front/front.h"
#include "front/http/stamp.h"
#include "front/jupyter/jupyter.h"
#include "front/log.h"
#include "front/mcp/subscribe.h"
#include "front/metrics.h"
#include "front/packages/packages.h"
#include "front/policy/judge.h"
#include "front/ports/ports.h"
#include "front/room/room.h"
#include "front/run/execution.h"
#include "front/run/process.h"
#include "front/run/record.h"
#include "front/sandbox/audit.h"
#include "front/sandbox/sandbox.h"
#include "front/workspaces/workspaces.h"

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
	struct sandbox *s = t->arg;

	s->expired = true;
	sandbox_end(s, "its time was over");
}

void sandbox_deadline(const struct sandbox *s, char *text, size_t size)
{
	char at[STAMP_MAX];

	stamp_text(at, s->expires_ms);
	(void)snprintf(text, size, "the sandbox reached its deadline, %s, and was removed", at);
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
	sandbox_note(s);
}

static struct sandbox *sandbox_new(struct front *f, const char *owner, const char *name,
				   struct sandbox_spec *spec)
{
	struct sandbox *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->f = f;
	s->image = &f->images.own;
	image_hold(s->image);
	s->slot = -1;
	execution_random_id(s->id);
	(void)snprintf(s->name, sizeof(s->name), "%s", name ? name : "");
	(void)snprintf(s->owner, sizeof(s->owner), "%s", owner);
	s->spec = *spec;
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

void sandbox_set_image(struct sandbox *s, struct guest_image *g)
{
	image_hold(g);
	image_release(s->image);
	s->image = g;
	(void)snprintf(s->spec.digest, sizeof(s->spec.digest), "%s", g->digest);
}

/* Those that do not run are only names: they take no place from those that do. */
static void count(const struct sandbox *s, bool one_more)
{
	struct front *f = s->f;

	if (s->name[0])
		mcp_sandboxes_changed(f, s->owner);
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

static void note_policy(struct sandbox *s)
{
	const struct rules *r = s->f->policy.rules;

	(void)snprintf(s->spec.policy, sizeof(s->spec.policy), "%s", r ? r->sha256 : "");
}

struct sandbox *sandbox_create(struct front *f, const char *owner, const char *name,
			       struct sandbox_spec *spec, struct refusal *ret)
{
	struct sandbox_spec plain;

	if (is_full(f)) {
		refuse_busy(f, ret);
		return NULL;
	}
	if (!spec) {
		sandbox_spec_default(f, owner, &plain);
		spec = &plain;
	}
	if (policy_sandbox(f, owner, spec, ret) < 0 ||
	    mount_use_admit(f, owner, &spec->mounts, ret) < 0 ||
	    workspaces_admit(f, owner, &spec->workspace, NULL, ret) < 0)
		return NULL;
	/* A digest has who wants the very image that another sandbox has (packages/fetcher.c). */
	struct guest_image *image =
		image_get(f, spec->image, spec->digest[0] ? spec->digest : NULL, ret);

	if (!image)
		return NULL;
	struct sandbox *s = sandbox_new(f, owner, name, spec);

	if (s)
		sandbox_set_image(s, image);
	image_release(image);
	if (!s) {
		*ret = (struct refusal){ .status = 503,
					 .code = "out_of_memory",
					 .retry_after_s = 1 };
		(void)snprintf(ret->message, sizeof(ret->message), "the daemon is out of memory");
		return NULL;
	}
	note_policy(s);
	if (s->spec.life_s)
		s->expires_ms = s->created_ms + s->spec.life_s * 1000; /* for its record */
	if (secrets_give(s, ret) < 0 || (name && audit_created(s, ret) < 0)) {
		unlist(s);
		secrets_take(s);
		image_release(s->image);
		free(s); /* the spec is still the caller's */
		return NULL;
	}
	count(s, true);
	sandbox_keep(s);
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

void sandbox_resume(struct sandbox *s)
{
	uint64_t now = stamp_now_ms();
	uint64_t left = s->expires_ms > now ? s->expires_ms - now : 1;

	s->state = SANDBOX_RUNNING;
	s->adopted_ms = now;
	s->reason[0] = '\0';
	count(s, true);
	timer_cancel(&s->end_timer);
	s->end_timer.fn = on_end;
	if (s->expires_ms)
		timer_set(&s->f->loop, &s->end_timer, clock_now_ns() + left * CLOCK_NS_PER_MS);
	sandbox_step(s);
}

/* ---- work ------------------------------------------------------------------------------------------------ */

/* Whoever just goes on with a session gets it, empty, and its epoch says so. */
static bool revive(struct sandbox *s, struct refusal *ret)
{
	if (is_full(s->f)) {
		refuse_busy(s->f, ret);
		return false;
	}
	if (policy_sandbox(s->f, s->owner, &s->spec, ret) < 0 ||
	    mount_use_admit(s->f, s->owner, &s->spec.mounts, ret) < 0 ||
	    workspaces_admit(s->f, s->owner, &s->spec.workspace, s, ret) < 0)
		return false;
	struct guest_image *image = image_get(s->f, s->spec.image, NULL, ret);

	if (!image)
		return false;
	sandbox_set_image(s, image);
	image_release(image);
	if (secrets_give(s, ret) < 0)
		return false;
	note_policy(s);
	timer_cancel(&s->end_timer);
	s->state = SANDBOX_RUNNING;
	s->reason[0] = '\0';
	s->epoch++;
	count(s, true);
	sandbox_keep(s);
	audit_changed(s);
	return true;
}

struct sandbox *sandbox_obtain(struct front *f, const char *owner, const char *name,
			       struct refusal *ret)
{
	struct sandbox *s = name ? sandbox_find(f, owner, name) : NULL;

	if (!s)
		return sandbox_create(f, owner, name, NULL, ret);
	return s->state == SANDBOX_LOST && !revive(s, ret) ? NULL : s;
}

/* The same for one of @image: a new one is made of it, and one that exists has to be of it. */
static struct sandbox *obtain_of(struct front *f, const char *owner, const char *name,
				 const char *image, struct refusal *ret)
{
	struct sandbox *s = name ? sandbox_find(f, owner, name) : NULL;
	struct sandbox_spec spec;

	if (s && strcmp(s->spec.image, image) != 0) {
		*ret = (struct refusal){
			.status = 409,
			.code = "spec_conflict",
			.field = "image",
			.hint = "leave 'image' out, or take another session_id",
		};
		(void)snprintf(ret->message, sizeof(ret->message),
			       "this session is of the image %.100s, not of %.100s",
			       s->spec.image[0] ? s->spec.image : f->images.own.name,
			       image[0] ? image : f->images.own.name);
		return NULL;
	}
	if (s)
		return sandbox_obtain(f, owner, name, ret);
	sandbox_spec_default(f, owner, &spec);
	(void)snprintf(spec.image, sizeof(spec.image), "%s", image);
	s = sandbox_create(f, owner, name, &spec, ret);
	if (!s)
		sandbox_spec_free(&spec);
	return s;
}

void sandbox_submit(struct front *f, const char *owner, const char *name, const char *image,
		    struct execution *x)
{
	struct refusal why;
	struct sandbox *s = image ? obtain_of(f, owner, name, image, &why) :
				    sandbox_obtain(f, owner, name, &why);

	/* Without memory for a record it is not asked for later, and that is all. */
	if (s && s->name[0] && execution_keep(x, s) && x->sink->event)
		(void)record_stream(x->record, NULL, NULL);
	if (s)
		sandbox_queue(s, x);
	else
		execution_refuse_as(x, &why);
}

void sandbox_queue(struct sandbox *s, struct execution *x)
{
	struct refusal why;

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
	if (!s->image->has_language[x->language->id]) {
		execution_no_language(x, s->image);
		sandbox_step(s);
		return;
	}
	if (policy_queue(s, &x->timeout_ms, &why) < 0) {
		execution_refuse(x, why.status, why.code, why.hint, why.retry_after_s, "%s",
				 why.message);
		sandbox_step(s); /* without a name it was for this one alone */
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

/* Whoever waits or runs is told, and the cell is gone. That the daemon ends is no fault of the call: ask again. */
static void empty(struct sandbox *s, const char *message)
{
	static const struct cell_usage ended = { .end = CELL_END_CLIENT };
	struct refusal why = { .status = 409, .code = "session_ended" };
	char deadline[128];

	if (s->expired) {
		why.hint = SANDBOX_LONGER;
		sandbox_deadline(s, deadline, sizeof(deadline));
		message = deadline;
	}
	if (s->f->draining || s->f->failed) {
		why = (struct refusal){ .status = 503, .code = "draining", .retry_after_s = 5 };
		message = "the daemon ended before the code did";
	}
	timer_cancel(&s->idle_timer);
	timer_cancel(&s->want_timer);
	timer_cancel(&s->stop_timer);
	timer_cancel(&s->end_timer);
	pool_unwant(&s->image->pool, &s->want);
	(void)snprintf(why.message, sizeof(why.message), "%s", message);
	while (s->head)
		execution_refuse(s->head, why.status, why.code, why.hint, why.retry_after_s, "%s",
				 message);
	sandbox_turn_out(s, &ended);
	while (s->entries) {
		struct entry *en = s->entries;

		sandbox_leave(en);
		en->refused(en, &why);
	}
	ports_close(s, "the sandbox ended");
	egress_drop(s);
	if (s->room)
		room_end(s->room);
	s->room = NULL;
	workspaces_left(s);
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

	egress_free(s);
	code_close(s);
	processes_free(s);
	records_free(&s->records);
	secrets_take(s);
	sandbox_spec_free(&s->spec);
	image_release(s->image);
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
	sandbox_keep_end(s);
	empty(s, "the sandbox was removed while the code waited or ran");
	jupyter_sandbox_ended(s);
	tell_waiters(s);
	if (s->name[0] && why)
		audit_removed(s, why);
	if (!s->name[0] || why)
		packages_left(f, s);
	sandbox_unkeep(s);
	unlist(s);
	if (s->state == SANDBOX_RUNNING)
		count(s, false);
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
	sandbox_keep_end(s);
	empty(s, "the sandbox was stopped while the code waited or ran");
	jupyter_sandbox_ended(s);
	count(s, false);
	/* Whoever still waited for its first cell gave it up just now: there is no name to keep. */
	if (s->ending)
		return;
	forget_later(s);
	audit_changed(s);
	sandbox_unkeep(s);
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
