/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execution.c - The making of an execution, and its end: the numbers, the verdict, the report.
 *
 * execution_run.c has the time between, with deadlines and interrupts. Time, memory and the end of
 * processes in a result come from the warden and from wait(2). Reports of the kernel are the code's
 * own output, and are believed as that.
 */
#include "front/sandbox/execution.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fd.h" /* ARRAY_SIZE */
#include "front/cell/cell.h"
#include "front/cell/image_use.h"
#include "front/sandbox/audit.h"
#include "front/sandbox/hooks.h"
#include "front/sandbox/network_hint.h"
#include "front/sandbox/record.h"
#include "front/sandbox/sandbox.h"
#include "front/sandbox/sandboxes.h"
#include "front/support/log.h"
#include "front/support/metrics.h"
#include "front/support/name.h"
#include "front/support/time_text.h"

#define AGAIN_NS (20 * CLOCK_NS_PER_MS)
#define RESULT_BYTES (16u << 20)
#define ERROR_BYTES (1u << 20)

/* ---- making -------------------------------------------------------------------------------- */

struct execution *execution_new(struct sandboxes *sandboxes, const struct language *l,
				const char *code, size_t len, uint64_t timeout_ms,
				const struct sink *sink, void *user)
{
	struct execution *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	x->sandboxes = sandboxes;
	x->sink = sink;
	x->user = user;
	x->language = l;
	x->code = malloc(len + 1);
	if (!x->code) {
		free(x);
		return NULL;
	}
	memcpy(x->code, code, len);
	x->code[len] = '\0';
	x->code_len = len;
	x->timeout_ms = timeout_ms;
	x->queued_ns = clock_now_ns();
	random_id(x->id);
	for (size_t i = 0; i < ARRAY_SIZE(x->own); i++) {
		uint64_t most = output_reserve(sandboxes->daemon->config.max_output);

		spool_init(&x->own[i], sandboxes->spools, most);
		spool_reserve(&x->own[i], most);
		x->streams[i] = &x->own[i];
	}
	buf_init(&x->result, RESULT_BYTES);
	buf_init(&x->error, ERROR_BYTES);
	return x;
}

void execution_free(struct execution *x)
{
	timer_cancel(&x->timer);
	timer_cancel(&x->hold);
	loop_undefer(x->sandboxes->loop, &x->deserted);
	buf_free(&x->held);
	free(x->code);
	free(x->stdin_text);
	for (size_t i = 0; i < ARRAY_SIZE(x->own); i++)
		spool_free(&x->own[i]);
	displays_clear(&x->displays, false);
	buf_free(&x->result);
	json_decref(x->result_metadata);
	buf_free(&x->error);
	buf_free(&x->answer);
	free(x);
}

bool execution_keep(struct execution *x, struct sandbox *s)
{
	x->record = record_new(&s->records, x->id, x->language->name,
			       output_reserve(x->sandboxes->daemon->config.max_output));
	if (!x->record)
		return false;
	x->streams[STREAM_STDOUT] = &x->record->out;
	x->streams[STREAM_STDERR] = &x->record->err;
	return true;
}

/* ---- the end ------------------------------------------------------------------------------- */

static void done(struct execution *x)
{
	struct sandbox *s = x->sandbox;

	if (x->rpcs)
		x->sandboxes->hooks->tools.cancel(x, false);
	if (x->begun)
		x->sandboxes->hooks->tools.over(x);
	x->phase = X_DONE;
	timer_cancel(&x->timer);
	if (s)
		x->epoch = s->epoch;
	if (!x->cancelled && x->sink->done)
		x->sink->done(x);
	if (x->record)
		execution_close_record(x);
	if (s)
		sandbox_executed(s, x);
	execution_free(x);
}

void execution_refuse_as(struct execution *x, const struct refusal *why)
{
	x->refusal = *why;
	if (x->begun)
		audit_refused(x->sandbox, x->id, x->language->name, &x->refusal);
	done(x);
}

void execution_refuse(struct execution *x, enum refusal_kind kind, const char *code,
		      const char *hint, unsigned int retry_after_s, const char *fmt, ...)
{
	struct refusal why = {
		.kind = kind, .code = code, .hint = hint, .retry_after_s = retry_after_s
	};
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(why.message, sizeof(why.message), fmt, ap);
	va_end(ap);
	execution_refuse_as(x, &why);
}

void execution_no_language(struct execution *x, const struct image_use *g)
{
	char there[128];

	image_languages(g, there, sizeof(there));
	(void)refusal_set(&x->refusal, REFUSAL_INVALID, "language_unavailable", "language", NULL,
			  "this image has no %s (%s was not found); there are: %s",
			  x->language->name, x->language->program, there);
	done(x);
}

static void write_log(const struct execution *x)
{
	log_event(LOG_LEVEL_INFO, "execution", F_STR("language", x->language->name),
		  F_STR("owner", x->sandbox->owner), F_STR("session", x->sandbox->name),
		  F_STR("status", result_status_name(x->verdict.status)),
		  F_STR("cause", result_cause_name(x->verdict.cause)),
		  F_INT("exit_code", x->verdict.exit_code), F_STR("state", x->state),
		  F_MS("ms", x->ended_ns - x->started_ns),
		  F_MS("waited_ms", x->started_ns - x->queued_ns),
		  F_UINT("stdout_bytes", x->streams[STREAM_STDOUT]->bytes),
		  F_UINT("stderr_bytes", x->streams[STREAM_STDERR]->bytes),
		  F_UINT("memory_peak", x->outcome.usage.memory_peak));
}

void execution_conclude(struct execution *x)
{
	struct outcome *o = &x->outcome;

	o->started = o->exited = true;
	o->api = true;
	o->exit.status = x->exit_status;
	o->wall_hit = x->wall_hit;
	o->wall_limit_ms = x->timeout_ms;
	o->wall_ns = x->ended_ns - x->started_ns;
	o->interrupted = x->interrupted;
	o->stdout_bytes = x->streams[STREAM_STDOUT]->bytes;
	o->stderr_bytes = x->streams[STREAM_STDERR]->bytes;
	/* The cell is gone, and the warden knows no reason: there is no exit status. */
	if (x->cell_gone && (o->usage.end == CELL_END_INIT || o->usage.end == CELL_RUNNING))
		o->exited = false;
	struct cell_spec spec = x->sandboxes->cells->spec;

	spec.limits = x->sandbox->spec.limits;
	result_judge(o, &spec, &x->verdict);
	if (x->broke && !x->wall_hit && !x->interrupted && x->verdict.cause != CAUSE_MEMORY) {
		x->verdict.status = RESULT_ERROR;
		x->verdict.cause = CAUSE_PROTOCOL;
		x->verdict.exit_code = x->verdict.exit_code ? x->verdict.exit_code : 1;
		(void)snprintf(x->verdict.hint, sizeof(x->verdict.hint),
			       "%s; the interpreter was ended", x->broke);
	}
	network_hint(x->sandbox, x->started_ns, x->streams[STREAM_STDOUT],
		     x->streams[STREAM_STDERR], &x->error, &x->verdict);
	execution_flush(x);
	bool lost = x->kernel_ended || x->cell_gone;

	x->state = !x->sandbox->name[0] ? "discarded" : lost ? "reset" : "kept";
	metric_execution(x->language->name, result_status_name(x->verdict.status), o->wall_ns);
	if (x->verdict.status != RESULT_OK)
		metric_error(x->verdict.cause == CAUSE_NONE ? "exception" :
							      result_cause_name(x->verdict.cause));
	write_log(x);
	if (x->begun)
		audit_end(x->sandbox, x->id, x->language->name, &x->verdict, o);
	done(x);
}

void execution_disk(struct execution *x, const struct init_disk *d)
{
	if (x->phase != X_JUDGING)
		return;
	x->outcome.exit.disk = *d;
	execution_conclude(x);
}

/*
 * The numbers of a cell count since it was made, those of an execution since the one before.
 * Between the two, commands may have run out of memory: such kills are counted from its own
 * beginning.
 */
static void subtract(const struct execution *x, struct cell_usage *u)
{
	const struct cell_usage *before = &x->sandbox->before;
	uint64_t kills = x->oom_kills > before->oom_kills ? x->oom_kills : before->oom_kills;

	u->cpu_ns -= u->cpu_ns >= before->cpu_ns ? before->cpu_ns : 0;
	u->throttled_ns -= u->throttled_ns >= before->throttled_ns ? before->throttled_ns : 0;
	u->pids_denied -= u->pids_denied >= before->pids_denied ? before->pids_denied : 0;
	u->oom_kills -= u->oom_kills >= kills ? kills : 0;
}

static void ask_again(struct timer *t)
{
	struct execution *x = t->arg;

	if (x->sandbox->cell)
		cell_usage(x->sandbox->cell);
	else
		execution_conclude(x);
}

void execution_usage(struct execution *x, const struct cell_usage *u)
{
	if (x->phase != X_JUDGING)
		return;
	/* A kernel that was killed may have been killed with its cell, whose end takes a moment to
	 * show. If pid 1 died first, its channel has ended, and the end of the cell is reported,
	 * however long that takes. */
	bool killed = x->kernel_ended && x->exit_status == SIGKILL && u->end == CELL_RUNNING;

	if (killed && x->sandbox->cell && cell_hung_up(x->sandbox->cell))
		return;
	/* The cell has ended: cell_lost() has it reported as gone, with its files, and the
	 * execution concludes then. */
	if (u->end != CELL_RUNNING && x->sandbox->cell) {
		cell_lost(x->sandbox->cell);
		return;
	}
	if (killed && !x->wall_hit && !x->asked_again) {
		x->asked_again = true;
		x->timer.fn = ask_again;
		timer_after(x->sandboxes->loop, &x->timer, AGAIN_NS);
		return;
	}
	/* A kernel that is dead by now did not end as it reported. */
	if (x->reported_done && u->kernel == KERNEL_ENDED && x->language->id == LANG_PYTHON &&
	    x->sandbox->cell && !x->sandbox->cell->kernels[LANG_PYTHON].command) {
		x->kernel_ended = true;
		x->exit_status = u->kernel_status;
	}
	x->outcome.usage = *u;
	subtract(x, &x->outcome.usage);
	x->sandbox->before = *u;
	/* After code that failed, the answer shows whether the disk was full. After an interrupt,
	 * it shows that the signal was sent, because init handles messages in order: the signal
	 * cannot reach the execution that follows. */
	if ((x->exit_status != 0 || x->wall_hit || x->interrupted) && x->sandbox->cell)
		cell_disk(x->sandbox->cell);
	else
		execution_conclude(x);
}

void execution_judge(struct execution *x)
{
	if (x->phase == X_JUDGING || x->phase == X_DONE)
		return;
	x->sandboxes->hooks->tools.cancel(x, false);
	x->phase = X_JUDGING;
	x->ended_ns = clock_now_ns();
	timer_cancel(&x->timer);
	struct cell *r = x->sandbox->cell;
	/* Numbers without a gauge are as before. */
	struct cell_usage u = x->sandbox->before;

	u.kernel = KERNEL_RUNS;
	if (x->reported_done && x->exit_status == 0 && r && cell_gauge(r, &u))
		execution_usage(x, &u);
	else if (r)
		cell_usage(r);
	else
		execution_conclude(x);
}

void execution_kernel_ended(struct execution *x, struct kernel *s, int status)
{
	x->kernel_ended = true;
	x->exit_status = status;
	x->broke = x->phase == X_RUNNING ? s->why : NULL;
	execution_judge(x);
}

void execution_cell_gone(struct execution *x, const struct cell_usage *u)
{
	x->cell_gone = true;
	x->outcome.usage = *u;
	subtract(x, &x->outcome.usage);
	if (x->phase != X_JUDGING)
		x->ended_ns = clock_now_ns();
	x->phase = X_JUDGING;
	execution_conclude(x);
}
