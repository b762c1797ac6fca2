/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox_end.c - How sandboxes end: stopped, halted with their name left behind, or removed.
 *
 * First the requests that wait or run are ended, then the cell, then the state that was stored for
 * the next front is removed. The memory is freed at the end of the loop's round: a function that is
 * called at the end of the sandbox may still hold it.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/list.h"
#include "front/cell/cell.h"
#include "front/cell/image_use.h"
#include "front/sandbox/audit.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/hooks.h"
#include "front/sandbox/process.h"
#include "front/sandbox/sandbox.h"
#include "front/sandbox/sandboxes.h"
#include "front/support/log.h"

#define STOP_STEP_NS (20 * CLOCK_NS_PER_MS)

/*
 * Refuse or end all requests, and end the cell. If the daemon itself ends, the request is not at
 * fault: the client may try again.
 */
static void empty(struct sandbox *s, const char *message)
{
	static const struct cell_usage ended = { .end = CELL_END_CLIENT };
	struct refusal why = { .kind = REFUSAL_CONFLICT, .code = "session_ended" };
	char deadline[128];

	if (s->expired) {
		why.hint = SANDBOX_LONGER;
		sandbox_deadline(s, deadline, sizeof(deadline));
		message = deadline;
	}
	if (s->sandboxes->daemon->draining || s->sandboxes->daemon->failed) {
		why = (struct refusal){ .kind = REFUSAL_UNAVAILABLE,
					.code = "draining",
					.retry_after_s = 5 };
		message = "the daemon ended before the code did";
	}
	timer_cancel(&s->idle_timer);
	timer_cancel(&s->want_timer);
	timer_cancel(&s->stop_timer);
	timer_cancel(&s->end_timer);
	pool_unwant(&s->image->pool, &s->want);
	(void)snprintf(why.message, sizeof(why.message), "%s", message);
	while (s->head)
		execution_refuse_as(s->head, &why);
	sandbox_turn_out(s, &ended);
	while (s->entries) {
		struct entry *en = s->entries;

		sandbox_leave(en);
		en->refused(en, &why);
	}
	s->sandboxes->hooks->close_ports(s, "the sandbox ended");
	s->sandboxes->hooks->egress.drop(s);
	s->sandboxes->hooks->packages.unlisten(s);
	if (s->cell)
		cell_end(s->cell);
	s->cell = NULL;
	s->sandboxes->hooks->workspace.left(s);
}

void sandbox_wait(struct sandbox *s, struct sandbox_waiter *w)
{
	w->sandbox = s;
	LIST_PUSH(s->waiters, w);
}

void sandbox_unwait(struct sandbox_waiter *w)
{
	if (!w->sandbox)
		return;
	LIST_DROP(w->sandbox->waiters, w);
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

	s->sandboxes->hooks->egress.free(s);
	s->sandboxes->hooks->tools.close(s);
	processes_free(s);
	records_free(&s->records);
	s->sandboxes->hooks->secrets.take(s);
	sandbox_spec_free(&s->spec);
	image_release(s->image);
	tail_free(&s->log);
	free(s);
}

void sandbox_end(struct sandbox *s, const char *why)
{
	struct sandboxes *sandboxes = s->sandboxes;

	if (s->ending)
		return;
	s->ending = true;
	if (s->name[0] && why)
		log_event(LOG_LEVEL_INFO, "session_end", F_STR("owner", s->owner),
			  F_STR("session", s->name), F_STR("why", why),
			  F_UINT("executions", s->executions));
	sandbox_keep_end(s);
	empty(s, "the sandbox was removed while the code waited or ran");
	s->sandboxes->hooks->wires.ended(s);
	tell_waiters(s);
	if (s->name[0] && why)
		audit_removed(s, why);
	if (!s->name[0] || why)
		sandboxes->hooks->packages.left(sandboxes->hooks->packages.part, s);
	sandbox_unkeep(s);
	sandbox_unlist(s);
	if (s->state == SANDBOX_RUNNING)
		sandbox_count(s, false);
	s->reaper.fn = reap;
	s->reaper.arg = s;
	loop_defer(sandboxes->loop, &s->reaper);
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
	s->sandboxes->hooks->wires.ended(s);
	sandbox_count(s, false);
	/* A request that still waited for the first cell may have ended the sandbox just now: then
	 * there is no name to keep. */
	if (s->ending)
		return;
	sandbox_forget_later(s);
	audit_changed(s);
	sandbox_unkeep(s);
	tell_waiters(s);
}

/* Whether nothing that the front knows of runs in it any more. */
static bool is_quiet(const struct sandbox *s)
{
	if (!s->cell)
		return true;
	for (size_t i = 0; i < LANG_MAX_; i++)
		if (s->cell->kernels[i].state != KERNEL_EMPTY)
			return false;
	return !s->cell->commands;
}

static void on_stop_step(struct timer *t)
{
	struct sandbox *s = t->arg;

	if (is_quiet(s) || s->sandboxes->loop->now_ns >= s->stop_until_ns)
		sandbox_halt(s, SANDBOX_STOPPED, "stopped by its owner");
	else
		timer_after(s->sandboxes->loop, t, STOP_STEP_NS);
}

void sandbox_stop(struct sandbox *s, uint64_t grace_ms)
{
	if (s->state != SANDBOX_RUNNING || s->stopping)
		return;
	s->stopping = true;
	s->stop_until_ns = s->sandboxes->loop->now_ns + grace_ms * CLOCK_NS_PER_MS;
	if (s->cell)
		cell_signal_all(s->cell, SIGTERM);
	s->stop_timer.fn = on_stop_step;
	s->stop_timer.arg = s;
	timer_after(s->sandboxes->loop, &s->stop_timer, STOP_STEP_NS);
}
