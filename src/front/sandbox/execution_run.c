/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execution_run.c - An execution while it runs: its code and its input go to the kernel, and its
 * time is watched.
 *
 * A deadline is an interrupt first, as Ctrl-C would be; a kernel that comes back within the grace
 * keeps its variables. A kernel that does not is killed, with everything in the cell but its files.
 * If even that does not end it, the front gives the cell up, and the warden ends the cell.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "front/cell/cell.h"
#include "front/cell/cells.h"
#include "front/cell/image_use.h"
#include "front/sandbox/event.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/hooks.h"
#include "front/sandbox/record.h"
#include "front/sandbox/sandbox.h"
#include "front/sandbox/sandboxes.h"
#include "front/support/log.h"
#include "front/support/time_text.h"

#define MESSAGE_BYTES (20u << 20)
#define MARGIN_MS 1000u               /* for code to report that it received nothing */
#define GRACE_NS (2 * CLOCK_NS_PER_S) /* from the interrupt to the kill */
#define GRACE_STEP_NS (200 * CLOCK_NS_PER_MS)
#define HOLD_STEP_NS (100 * CLOCK_NS_PER_MS)
#define KILL_NS (5 * CLOCK_NS_PER_S) /* from the kill to giving the cell up */

/* ---- to the kernel ------------------------------------------------------------------------- */

static void send_object(struct kernel *s, struct json *j, struct buf *b)
{
	if (json_finish(j) < 0 && !b->err)
		b->err = -EMSGSIZE;
	kernel_pipes_send(&s->pipes, b);
}

static void send_code(struct execution *x, struct kernel *s)
{
	_buf_ struct buf b = BUF_INIT(MESSAGE_BYTES);
	struct json j;
	char name[32];
	const char *key;
	json_t *value, *image_env = s->cell->image->env;

	(void)snprintf(name, sizeof(name), "<execution-%" PRIu64 ">", x->sandbox->executions);
	json_init(&j, &b);
	json_object_begin(&j);
	json_member_str(&j, "type", "execute");
	json_member_str(&j, "id", x->id);
	json_member_str(&j, "name", name);
	json_key(&j, x->is_query ? "query" : "code");
	if (x->is_query)
		json_raw(&j, x->code, x->code_len);
	else
		(void)json_strn(&j, x->code, x->code_len);
	if (x->language->id == LANG_PYTHON && !s->env_sent && (s->cell->env || image_env)) {
		json_key(&j, "env");
		json_object_begin(&j);
		json_object_foreach(image_env, key, value)
		{
			if (!json_object_get(s->cell->env, key))
				json_member_str(&j, key, json_string_value(value));
		}
		json_object_foreach(s->cell->env, key, value)
			json_member_str(&j, key, json_string_value(value));
		json_object_end(&j);
	}
	s->env_sent = true;
	if (x->look)
		json_member_bool(&j, "files", true);
	if (x->count)
		json_member_uint(&j, "count", x->count);
	x->sandboxes->hooks->tools.write(x, &j);
	json_object_end(&j);
	send_object(s, &j, &b);
}

/* ---- input() ------------------------------------------------------------------------------- */

/* The next line of the text that came with the request. */
static bool next_line(struct execution *x, const char **line, size_t *len)
{
	const char *at = x->stdin_text + x->stdin_at;
	const char *nl = strchr(at, '\n');

	if (!*at)
		return false;
	*line = at;
	*len = nl ? (size_t)(nl - at) : strlen(at);
	x->stdin_at += *len + (nl ? 1 : 0);
	return true;
}

void execution_answer_input(struct kernel *s, int64_t id, const char *value, size_t len,
			    const char *error, bool eof)
{
	_buf_ struct buf b = BUF_INIT(MESSAGE_BYTES);
	struct json j;

	json_init(&j, &b);
	json_object_begin(&j);
	json_member_str(&j, "type", "input_response");
	json_member_int(&j, "id", id);
	if (value) {
		json_key(&j, "value");
		(void)json_strn(&j, value, len);
	}
	if (error)
		json_member_str(&j, "error", error);
	if (eof)
		json_member_bool(&j, "eof", true);
	json_object_end(&j);
	send_object(s, &j, &b);
}

void execution_asks(struct execution *x, struct kernel *s, const json_t *m)
{
	int64_t id = json_integer_value(json_object_get(m, "id"));
	const char *line;
	size_t len;

	if (x->has_stdin) {
		bool more = next_line(x, &line, &len);

		execution_answer_input(s, id, more ? line : NULL, more ? len : 0, NULL, !more);
	} else if (x->sink->can_answer && !x->cancelled) {
		json_t *members = json_copy((json_t *)m);

		if (!members || json_object_del(members, "type") < 0) {
			json_decref(members);
			execution_answer_input(s, id, NULL, 0, "there is no memory to ask", false);
			return;
		}
		if (x->sink->patient && !x->asked)
			execution_hold(x);
		x->asked = true;
		x->question = id;
		execution_emit(x, EVENT_INPUT_REQUEST, members, 0);
		json_decref(members);
	} else {
		execution_answer_input(
			s, id, NULL, 0,
			"input() has nobody to ask here: write the answer into the code, or send "
			"it as standard input (\"stdin\" of /execute, caisson run -i)",
			false);
	}
}

void execution_answer(struct execution *x, int64_t id, const char *value, const char *error)
{
	struct cell *r = x->sandbox ? x->sandbox->cell : NULL;

	if (x->asked && x->sink->patient)
		execution_release(x);
	x->asked = false;
	if (r && x->phase == X_RUNNING && r->kernels[x->language->id].attached)
		execution_answer_input(&r->kernels[x->language->id], id, value,
				       value ? strlen(value) : 0, error, false);
}

void execution_leave(struct execution *x)
{
	static const struct sink nobody = { .congested = execution_readers_behind };

	if (x->asked)
		execution_answer(x, x->question, NULL,
				 "input() has nobody to ask: the client left");
	x->sink = &nobody;
	x->user = NULL;
}

static void set_deadline(struct execution *x);
static uint64_t left_ns(const struct execution *x);

/* ---- time ---------------------------------------------------------------------------------- */

/* Read the kernel's answer even if its cell has to rest. False: it does not rest. */
static bool wake(struct execution *x)
{
	struct cell *r = x->sandbox->cell;
	struct kernel *k = r ? &r->kernels[x->language->id] : NULL;

	return k && k->attached && kernel_pipes_wake(&k->pipes);
}

static void on_timer(struct timer *t)
{
	struct execution *x = t->arg;
	struct cell *r = x->sandbox->cell;

	switch (x->phase) {
	case X_RUNNING:
		if (x->holds && left_ns(x) > 0) {
			set_deadline(x);
			break;
		}
		/* The kernel may have reported the end already, and the front not read it. */
		if (!x->woken && wake(x)) {
			x->woken = true;
			timer_after(x->sandboxes->loop, t, GRACE_STEP_NS);
			break;
		}
		x->wall_hit = true;
		execution_interrupt(x);
		break;
	case X_INTERRUPTED:
		/* The first interrupt may have come before the code began, when the kernel ignores
		 * it. */
		if (x->sandboxes->loop->now_ns < x->grace_until_ns) {
			cell_interrupt(r, &r->kernels[x->language->id]);
			(void)wake(x);
			timer_after(x->sandboxes->loop, t, GRACE_STEP_NS);
			break;
		}
		x->phase = X_KILLED;
		cell_kill_all(r);
		timer_after(x->sandboxes->loop, t, KILL_NS);
		break;
	case X_KILLED: {
		/* SIGKILL has not ended it: the front gives the cell up, and the warden ends it. */
		static const struct cell_usage none = { .end = CELL_END_CLIENT };

		x->sandbox->cell = NULL;
		x->exit_status = SIGKILL;
		cell_end(r);
		x->sandbox->epoch++;
		x->sandbox->sandboxes->hooks->wires.kernel_ended(x->sandbox, x->language);
		x->sandbox->sandboxes->hooks->wires.cell_gone(x->sandbox);
		execution_cell_gone(x, &none);
		break;
	}
	default:
		break;
	}
}

/* It never ran: the result is that of an execution that was interrupted in its first line. */
static void interrupt_queued(struct execution *x)
{
	x->phase = X_JUDGING;
	x->interrupted = SIGINT;
	x->exit_status = SIGINT;
	x->started_ns = x->ended_ns = clock_now_ns();
	execution_conclude(x);
}

void execution_interrupt(struct execution *x)
{
	struct cell *r = x->sandbox ? x->sandbox->cell : NULL;

	if (x->phase == X_QUEUED && x->sandbox) {
		interrupt_queued(x);
		return;
	}
	if (x->phase != X_RUNNING || !r)
		return;
	x->phase = X_INTERRUPTED;
	x->sandboxes->hooks->tools.cancel(x, true);
	if (!x->wall_hit)
		x->interrupted = SIGINT;
	cell_interrupt(r, &r->kernels[x->language->id]);
	x->grace_until_ns = x->sandboxes->loop->now_ns + GRACE_NS;
	timer_after(x->sandboxes->loop, &x->timer, GRACE_STEP_NS);
	execution_resume(x); /* a full pipe must not keep it from handling the interrupt */
	(void)wake(x);
}

void execution_cancel(struct execution *x)
{
	x->cancelled = true;
	x->user = NULL;
	if (x->sandbox && !x->sandbox->name[0])
		sandbox_end(x->sandbox, "the client went away");
	else if (x->phase == X_QUEUED)
		execution_refuse(x, REFUSAL_CANCELLED, "cancelled", NULL, 0,
				 "the client went away");
	else
		execution_interrupt(x);
}

/* ---- time that stands still ---------------------------------------------------------------- */

static uint64_t cpu_ns_of(const struct execution *x)
{
	const struct cell *r = x->sandbox->cell;
	uint64_t ns;

	if (r && r->cells->spec.without & CELL_WITHOUT_CGROUP)
		return clock_now_ns(); /* nobody counts: it computes all the time */
	return r && gauges_cpu(&r->gauges, &ns) ? ns : x->held_cpu_ns;
}

/* How long the time stood still so far. Code that computes while a person is asked uses its time:
 * the processor time of the cell since then counts. */
static uint64_t stood_ns(const struct execution *x)
{
	const uint64_t most = EXECUTION_STAND_MAX_S * CLOCK_NS_PER_S;
	uint64_t all = x->stood_ns;

	if (x->holds) {
		uint64_t held = clock_now_ns() - x->held_ns, used = cpu_ns_of(x) - x->held_cpu_ns;

		all += held > used ? held - used : 0;
	}
	return all < most ? all : most;
}

static uint64_t left_ns(const struct execution *x)
{
	uint64_t end = x->started_ns + x->timeout_ms * CLOCK_NS_PER_MS + stood_ns(x);
	uint64_t now = clock_now_ns();

	return end > now ? end - now : 0;
}

/* While the time stands still: look again when the cell could have used the rest on all its
 * processors. */
static void set_deadline(struct execution *x)
{
	uint64_t left = left_ns(x), cpus = (x->sandbox->spec.limits.cpu_milli + 999) / 1000;

	if (x->holds) {
		left /= cpus ? cpus : 1;
		left = left > HOLD_STEP_NS ? left : HOLD_STEP_NS;
	}
	timer_set(x->sandboxes->loop, &x->timer, clock_now_ns() + left);
}

void execution_hold(struct execution *x)
{
	if (x->holds || x->phase != X_RUNNING) {
		x->holds++;
		return;
	}
	x->held_cpu_ns = cpu_ns_of(x);
	x->held_ns = clock_now_ns();
	x->holds++;
	set_deadline(x);
}

void execution_release(struct execution *x)
{
	if (x->holds > 1 || x->phase != X_RUNNING) {
		x->holds--;
		return;
	}
	x->stood_ns = stood_ns(x);
	x->holds--;
	set_deadline(x);
}

uint64_t execution_patience_ms(const struct execution *x)
{
	uint64_t left_ms = left_ns(x) / CLOCK_NS_PER_MS;
	uint64_t margin_ms = left_ms / 10 < MARGIN_MS ? left_ms / 10 : MARGIN_MS;

	return left_ms > margin_ms ? left_ms - margin_ms : 1;
}

/* ---- the beginning ------------------------------------------------------------------------- */

void execution_run(struct execution *x, struct kernel *s)
{
	x->phase = X_RUNNING;
	x->started_ns = clock_now_ns();
	x->started_files_ms = time_files_ms();
	x->oom_kills = gauges_oom(&s->cell->gauges);
	x->timer.fn = on_timer;
	x->timer.arg = x;
	set_deadline(x);
	if (x->record)
		record_started(x->record);
	log_event(LOG_LEVEL_DEBUG, "execution_begin", F_STR("id", x->id),
		  F_STR("owner", x->sandbox->owner), F_STR("session", x->sandbox->name),
		  F_UINT("cell", s->cell->handle), F_STR("language", x->language->name));
	send_code(x, s);
}
