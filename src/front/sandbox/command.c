/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command.c - The life of one command, event by event.
 *
 * Several commands run in a cell side by side, so the usage of one comes from wait(2), not from the
 * counters of the cell. These are read only to explain why a command failed: whether the cell ran
 * out of memory or processes while it ran. At a deadline the process group of the command is
 * interrupted first, and killed after a grace.
 */
#include "front/sandbox/command.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "cell/spec.h"
#include "client/init_client.h"
#include "front/sandbox/exec_result.h"
#include "front/sandbox/hooks.h"
#include "front/sandbox/sandboxes.h"

#define GRACE_NS (2 * CLOCK_NS_PER_S) /* from the interrupt to the kill */
#define KILL_NS (5 * CLOCK_NS_PER_S)  /* from the kill to giving the command up */
#define AGAIN_NS (20 * CLOCK_NS_PER_MS)
#define RETRY_S 1u

static struct command *of_job(struct cell_command *job)
{
	return (struct command *)((char *)job - offsetof(struct command, job));
}

/* ---- the end ------------------------------------------------------------------------------- */

static void let_go(struct command *c)
{
	timer_cancel(&c->timer);
	warden_link_forget(c->sandboxes->cells->link, &c->usage_call);
	if (c->cell)
		cell_forget(c->cell, &c->job);
	command_io_close(c);
}

/* Report the end. The owner may free the command in this call. */
static void done(struct command *c)
{
	let_go(c);
	c->phase = COMMAND_DONE;
	c->ops->done(c);
}

static void refuse(struct command *c, const struct refusal *why)
{
	c->refusal = *why;
	done(c);
}

static void refuse_text(struct command *c, enum refusal_kind kind, const char *code,
			const char *field, unsigned int retry_after_s, const char *text)
{
	struct refusal why;

	(void)refusal_set(&why, kind, code, field, NULL, "%.300s", text);
	why.retry_after_s = retry_after_s;
	refuse(c, &why);
}

void command_release(struct command *c)
{
	if (!c->sandboxes)
		return;
	if (c->phase >= COMMAND_STARTING && c->phase < COMMAND_JUDGING && c->cell)
		cell_signal(c->cell, &c->job, INIT_TARGET_GROUP, SIGKILL);
	let_go(c);
	c->phase = COMMAND_DONE;
	c->cell = NULL;
	command_line_free(&c->line);
	sandbox_leave(&c->entry);
}

/* ---- the verdict --------------------------------------------------------------------------- */

static void tell_deadline(struct command *c)
{
	char *hint = c->verdict.hint;
	size_t size = sizeof(c->verdict.hint), n;

	sandbox_deadline(c->sandbox, hint, size);
	n = strlen(hint);
	(void)snprintf(hint + n, size - n, "; %s", SANDBOX_LONGER);
}

static void conclude(struct command *c)
{
	struct outcome *o = &c->outcome;
	struct cell_spec spec = { .limits = c->limits };
	struct cell_usage cell = { 0 };

	o->started = o->api = true;
	o->wall_hit = c->wall_hit;
	o->wall_limit_ms = c->timeout_ms;
	/* Time counts from the request to pid 1: the clock of pid 1 begins after the program was
	 * loaded, which has taken processor time already. */
	o->wall_ns = c->ended_ns - (c->asked_ns ? c->asked_ns : c->started_ns);
	o->interrupted = c->stopped;
	o->stdout_bytes = c->bytes[COMMAND_STDOUT];
	o->stderr_bytes = c->bytes[COMMAND_STDERR];
	result_judge(o, &spec, &c->verdict);
	if (c->expired)
		tell_deadline(c);
	if (c->verdict.status != RESULT_OK && !c->verdict.hint[0] && c->entry.sandbox)
		(void)c->entry.sandbox->sandboxes->hooks->egress.hint(c->entry.sandbox,
								      c->started_ns, false,
								      c->verdict.hint,
								      sizeof(c->verdict.hint));
	/* From here on the numbers are those of the command alone. */
	if (o->exited) {
		o->usage.cpu_ns = o->exit.user_ns + o->exit.system_ns;
		o->usage.memory_peak = o->exit.maxrss_bytes;
		o->usage.throttled_ns = 0;
		/* Except this one, which is counted for the cell alone: it is the sandbox's. */
		if (c->cell && gauges_read(&c->cell->gauges, &cell))
			o->usage.pids_peak = cell.pids_peak;
	}
	done(c);
}

static void ask_usage(struct timer *t);

static void on_usage(struct warden_call *call, const struct warden_reply *reply, int *fds, size_t n)
{
	struct command *c = call->arg;
	struct cell_usage *u = &c->outcome.usage;

	(void)fds;
	(void)n;
	if (reply->code == 0)
		*u = reply->usage;
	/* The cell has ended, too: gone is called, and the command concludes then. */
	if (c->cell && (u->end != CELL_RUNNING || cell_hung_up(c->cell))) {
		cell_lost(c->cell);
		return;
	}
	u->oom_kills = u->oom_kills > c->oom_kills ? u->oom_kills - c->oom_kills : 0;
	/* Killed, but not by the front: perhaps with its cell, or with an interpreter, whose end
	 * takes a moment to show. */
	bool killed = WIFSIGNALED(c->outcome.exit.status) &&
		      WTERMSIG(c->outcome.exit.status) == SIGKILL;

	if ((killed || u->oom_kills > 0) && !c->asked_again) {
		c->asked_again = true;
		c->timer.fn = ask_usage;
		timer_after(c->sandboxes->loop, &c->timer, AGAIN_NS);
		return;
	}
	u->pids_denied = u->pids_denied > c->denied ? u->pids_denied - c->denied : 0;
	conclude(c);
}

void command_left_members(const struct command *c, struct json *j)
{
	uint32_t now = c->sandbox->epoch;

	exec_left_members(j, c->sandbox, c->gone || now != c->epoch, c->gone, now);
}

static void ask_usage(struct timer *t)
{
	struct command *c = t->arg;

	c->usage_call.fn = on_usage;
	c->usage_call.arg = c;
	if (!c->cell || !c->cell->handle ||
	    warden_link_ask_cell(c->sandboxes->cells->link, &c->usage_call, WARDEN_USAGE,
				 c->cell->handle, 0, NULL) < 0)
		conclude(c);
}

/*
 * The program has ended. Processes that it left behind in its group are killed, unless they may
 * stay.
 */
static void judge(struct command *c)
{
	/* A program that went well may have cost an interpreter its memory. */
	bool well = c->outcome.exit.status == 0 &&
		    (!c->cell || gauges_oom(&c->cell->gauges) <= c->oom_kills);
	bool explained = well || c->wall_hit || c->stopped;

	c->phase = COMMAND_JUDGING;
	c->ended_ns = clock_now_ns();
	timer_cancel(&c->timer);
	if (c->cell && c->pid > 1 && (!c->alone || c->wall_hit || c->stopped))
		cell_signal_group(c->cell, c->pid, SIGKILL);
	command_io_drain(c);
	if (explained)
		conclude(c);
	else
		ask_usage(&c->timer);
}

/* ---- reports of pid 1 ---------------------------------------------------------------------- */

static void on_timer(struct timer *t);

static void on_started(struct cell_command *job, int pid, int *fds, size_t n_fds)
{
	struct command *c = of_job(job);

	c->pid = pid;
	c->started_ns = clock_now_ns();
	/* Without streams it was killed before it had made them: its end is reported, too. */
	if (n_fds > 0 && command_io_begin(c, fds, n_fds) < 0) {
		cell_signal(c->cell, job, INIT_TARGET_GROUP, SIGKILL);
		refuse_text(c, REFUSAL_UNAVAILABLE, "sandbox_failed", NULL, RETRY_S,
			    "the streams of the command could not be watched");
		return;
	}
	bool cancelled = c->phase != COMMAND_STARTING;

	c->phase = COMMAND_RUNNING;
	c->timer.fn = on_timer;
	if (c->timeout_ms)
		timer_set(c->sandboxes->loop, &c->timer,
			  c->started_ns + c->timeout_ms * CLOCK_NS_PER_MS);
	if (c->ops->started)
		c->ops->started(c);
	if (cancelled)
		command_stop(c);
}

static void start(struct command *c);

static void not_started(struct command *c, const struct init_failed *f, int code, const char *text)
{
	c->not_started = true;
	c->started_ns = c->ended_ns = clock_now_ns();
	c->verdict = (struct result){ .status = RESULT_ERROR, .exit_code = code };
	if (f->stage == INIT_STAGE_FORK) {
		c->verdict.status = RESULT_LIMIT;
		c->verdict.cause = CAUSE_PIDS;
		c->verdict.limit = c->verdict.peak = c->limits.pids;
	}
	(void)snprintf(c->verdict.hint, sizeof(c->verdict.hint), "%.250s", text);
	done(c);
}

/* A missing directory is an error of the request; a missing program is a result. */
static void on_failed(struct cell_command *job, const struct init_failed *f)
{
	struct command *c = of_job(job);
	struct err e = { 0 };
	bool missing = f->stage == INIT_STAGE_EXEC && (f->error == ENOENT || f->error == ENOTDIR);

	if (missing && c->line.other) {
		char *name = strdup(c->line.other);

		if (name) {
			free(c->line.argv[0]);
			c->line.argv[0] = name;
			c->line.other = NULL;
			start(c);
			return;
		}
	}
	int code = init_explain(f, c->line.argv[0], c->line.cwd, &e);

	if (missing || f->stage == INIT_STAGE_EXEC ||
	    (f->stage == INIT_STAGE_FORK && f->error == EAGAIN)) {
		not_started(c, f, code, e.msg);
	} else if (f->stage == INIT_STAGE_CWD) {
		refuse_text(c, REFUSAL_INVALID, "invalid_cwd", "cwd", 0,
			    "the working directory does not exist, or cannot be entered");
	} else if (f->stage == INIT_STAGE_REQUEST && f->error == EAGAIN) {
		refuse_text(c, REFUSAL_TOO_MANY, "busy", NULL, RETRY_S,
			    "too many commands run in this sandbox already");
	} else {
		refuse_text(c, REFUSAL_UNAVAILABLE, "sandbox_failed", NULL, RETRY_S, e.msg);
	}
}

static void on_exited(struct cell_command *job, const struct init_exited *x)
{
	struct command *c = of_job(job);

	c->outcome.exited = true;
	c->outcome.exit = *x;
	judge(c);
}

/* ---- entering the sandbox ------------------------------------------------------------------ */

static void on_refused_late(struct timer *t)
{
	done(t->arg);
}

static void start(struct command *c)
{
	struct exec_request q = {
		.flags = c->pty ? INIT_TTY : INIT_PIPES,
		.cwd = c->line.cwd,
		.argv = (const char *const *)c->line.argv,
		.envp = (const char *const *)c->line.envp,
		.script_fd = -1,
		.uid = CELL_UID,
		.gid = CELL_GID,
		.rows = c->rows,
		.cols = c->cols,
	};
	struct err e = { 0 };

	c->job = (struct cell_command){ .started = on_started,
					.failed = on_failed,
					.exited = on_exited };
	if (cell_exec(c->cell, &c->job, &q, &e) == 0)
		return;
	/* The sandbox that let the command in still goes through its entries: report the refusal
	 * later. */
	(void)refusal_set(&c->refusal, REFUSAL_UNAVAILABLE, "sandbox_failed", NULL, NULL, "%.300s",
			  e.msg);
	c->refusal.retry_after_s = RETRY_S;
	c->timer.fn = on_refused_late;
	timer_set(c->sandboxes->loop, &c->timer, c->sandboxes->loop->now_ns);
}

static void on_in(struct entry *en, struct cell *r)
{
	struct command *c = en->arg;
	struct cell_usage u = { 0 };

	c->cell = r;
	c->limits = r->limits;
	c->denied = gauges_read(&r->gauges, &u) ? u.pids_denied : 0;
	c->oom_kills = gauges_oom(&r->gauges);
	c->epoch = c->sandbox->epoch;
	if (c->phase != COMMAND_WAITING)
		return;
	c->phase = COMMAND_STARTING;
	c->asked_ns = clock_now_ns();
	start(c);
}

static void on_refused(struct entry *en, const struct refusal *why)
{
	refuse(en->arg, why);
}

/* The cell is over, with everything that ran in it. Output from before is still in the pipes. */
static void on_gone(struct entry *en, const struct cell_usage *u)
{
	struct command *c = en->arg;

	cell_forget(c->cell, &c->job);
	c->cell = NULL;
	c->gone = true;
	if (c->phase == COMMAND_DONE)
		return;
	timer_cancel(&c->timer);
	warden_link_forget(c->sandboxes->cells->link, &c->usage_call);
	if (c->phase != COMMAND_JUDGING)
		c->ended_ns = clock_now_ns();
	if (!c->started_ns)
		c->started_ns = c->ended_ns;
	c->phase = COMMAND_JUDGING;
	command_io_drain(c);
	c->outcome.usage = *u;
	c->outcome.usage.pids_denied = 0;
	c->outcome.usage.oom_kills = u->oom_kills > c->oom_kills ? u->oom_kills - c->oom_kills : 0;
	if (!c->outcome.exited && u->end == CELL_END_CLIENT)
		c->stopped = SIGKILL;
	c->expired = c->stopped && c->sandbox->expired;
	conclude(c);
}

void command_run(struct command *c, struct sandbox *s)
{
	c->sandboxes = s->sandboxes;
	c->sandbox = s;
	c->in.fd = c->out[0].fd = c->out[1].fd = -1;
	c->timer.arg = c;
	c->entry = (struct entry){ .in = on_in, .refused = on_refused, .gone = on_gone, .arg = c };
	sandbox_enter(s, &c->entry);
}

size_t commands_in(const struct sandbox *s)
{
	size_t n = 0;

	for (const struct entry *en = s->entries; en; en = en->next)
		n += en->in == on_in && ((const struct command *)en->arg)->phase != COMMAND_DONE;
	return n;
}

/* ---- time and signals ---------------------------------------------------------------------- */

static void interrupt(struct command *c)
{
	c->phase = COMMAND_INTERRUPTED;
	cell_signal(c->cell, &c->job, INIT_TARGET_GROUP, SIGINT);
	timer_after(c->sandboxes->loop, &c->timer, GRACE_NS);
	command_resume(c); /* a full pipe must not keep it from handling the signal */
}

static void on_timer(struct timer *t)
{
	struct command *c = t->arg;

	switch (c->phase) {
	case COMMAND_RUNNING:
		c->wall_hit = true;
		interrupt(c);
		break;
	case COMMAND_INTERRUPTED:
		c->phase = COMMAND_KILLED;
		cell_signal(c->cell, &c->job, INIT_TARGET_GROUP, SIGKILL);
		timer_after(c->sandboxes->loop, t, KILL_NS);
		break;
	case COMMAND_KILLED:
		/* SIGKILL has not ended it. It counts as killed, and no request waits for it any
		 * longer; it ends with its cell. */
		c->outcome.exited = true;
		c->outcome.exit.status = SIGKILL;
		judge(c);
		break;
	default:
		break;
	}
}

bool command_signal(struct command *c, int signo, bool group)
{
	if (!c->cell || !c->pid || c->phase < COMMAND_RUNNING || c->phase > COMMAND_KILLED)
		return false;
	cell_signal(c->cell, &c->job, group ? INIT_TARGET_GROUP : INIT_TARGET_COMMAND, signo);
	return true;
}

void command_stop(struct command *c)
{
	switch (c->phase) {
	case COMMAND_WAITING:
		sandbox_leave(&c->entry);
		refuse_text(c, REFUSAL_CANCELLED, "cancelled", NULL, 0,
			    "it was cancelled before it ran");
		break;
	case COMMAND_STARTING:
		c->phase = COMMAND_INTERRUPTED; /* on_started() stops it */
		c->stopped = SIGINT;
		break;
	case COMMAND_RUNNING:
		c->stopped = SIGINT;
		interrupt(c);
		break;
	default:
		break;
	}
}
