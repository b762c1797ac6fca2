/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process.c - The table of a sandbox's processes.
 *
 * A process is a command whose output goes to spools and to listeners. A process on a terminal
 * waits when all its listeners are slow, as terminals do; a process with pipes never waits: output
 * that a listener does not take in time is in the spool.
 */
#include "front/sandbox/process.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/num.h"
#include "front/cell/image_use.h"
#include "front/sandbox/audit.h"
#include "front/sandbox/exec_result.h"
#include "front/sandbox/hooks.h"
#include "front/sandbox/network_hint.h"
#include "front/sandbox/sandboxes.h"
#include "front/spec/judge.h"
#include "front/support/log.h"
#include "front/support/name.h"
#include "front/support/schema.h"
#include "front/support/time_text.h"

#define KEPT_NS (5 * 60 * CLOCK_NS_PER_S)
#define ROWS 24
#define COLS 80

struct processes {
	struct sandbox *sandbox;
	struct process *first;
	size_t n, n_alive;
};

int process_signal_number(const char *name)
{
	uint64_t n;

	if (strncasecmp(name, "SIG", 3) == 0)
		name += 3;
	else if (num_parse_u64(name, 1, 64, &n, NULL) == 0)
		return (int)n;
	for (int signo = 1; signo < NSIG; signo++)
		if (sigabbrev_np(signo) && strcasecmp(sigabbrev_np(signo), name) == 0)
			return signo;
	return 0;
}

/* ---- listeners ----------------------------------------------------------------------------- */

void process_listen(struct process *p, struct process_listener *l)
{
	l->process = p;
	l->next = p->listeners;
	p->listeners = l;
}

void process_unlisten(struct process_listener *l)
{
	struct process *p = l->process;

	if (!p)
		return;
	for (struct process_listener **at = &p->listeners; *at; at = &(*at)->next)
		if (*at == l) {
			*at = l->next;
			break;
		}
	l->process = NULL;
	l->next = NULL;
	process_resume(p); /* the process may have waited for this listener */
}

void process_resume(struct process *p)
{
	command_resume(&p->command);
}

/* ---- events of the command ----------------------------------------------------------------- */

static void on_started(struct command *c)
{
	struct process *p = c->owner;
	struct process_listener *next;

	p->started = true;
	p->started_ms = time_now_ms();
	for (struct process_listener *l = p->listeners; l; l = next) {
		next = l->next;
		if (l->started)
			l->started(l);
	}
}

static void on_output(struct command *c, enum command_stream stream, const char *data, size_t len)
{
	struct process *p = c->owner;
	struct process_listener *next;

	spool_append(&p->spool[stream], data, len);
	for (struct process_listener *l = p->listeners; l; l = next) {
		next = l->next;
		if (l->output)
			l->output(l, stream, data, len);
	}
}

static bool is_congested(struct command *c)
{
	const struct process *p = c->owner;
	bool any = false;

	if (!c->pty)
		return false;
	for (struct process_listener *l = p->listeners; l; l = l->next) {
		if (!l->congested)
			continue;
		if (!l->congested(l))
			return false;
		any = true;
	}
	return any;
}

static void on_input_ready(struct command *c)
{
	struct process *p = c->owner;
	struct process_listener *next;

	for (struct process_listener *l = p->listeners; l; l = next) {
		next = l->next;
		if (l->input_ready)
			l->input_ready(l);
	}
}

static void free_process(struct process *p);

static void on_forget(struct timer *t)
{
	free_process(t->arg);
}

static const char *kind_of(const struct process *p)
{
	return p->command.pty ? "terminal" : "process";
}

/*
 * Write its end to the ledger: with a result; as refused, if its command was; as dropped, if it
 * still ran.
 */
static void write_end(const struct process *p)
{
	const struct command *c = &p->command;
	struct sandbox *s = p->owner->sandbox;

	if (p->exited && !c->refusal.kind)
		audit_end(s, p->id, kind_of(p), &c->verdict, &c->outcome);
	else if (p->exited)
		audit_refused(s, p->id, kind_of(p), &c->refusal);
	else
		audit_dropped(s, p->id, kind_of(p));
}

static void write_log(const struct process *p)
{
	const struct command *c = &p->command;
	const struct sandbox *s = p->owner->sandbox;

	log_event(LOG_LEVEL_INFO, "process_end", F_STR("owner", s->owner),
		  F_STR("sandbox", s->name), F_STR("process_id", p->id),
		  F_STR("status", result_status_name(c->verdict.status)),
		  F_STR("cause", result_cause_name(c->verdict.cause)),
		  F_INT("exit_code", c->verdict.exit_code),
		  F_MS("ms", c->ended_ns - c->started_ns));
}

static void on_done(struct command *c)
{
	struct process *p = c->owner;
	struct process_listener *next;
	bool ran = p->started;

	p->exited = true;
	p->ended_ms = time_now_ms();
	p->owner->n_alive--;
	if (ran) {
		network_hint(p->owner->sandbox, c->started_ns, &p->spool[COMMAND_STDOUT],
			     &p->spool[COMMAND_STDERR], NULL, &c->verdict);
		write_log(p);
	}
	write_end(p);
	command_release(c);
	if (ran)
		timer_after(c->sandboxes->loop, &p->forget, KEPT_NS);
	for (struct process_listener *l = p->listeners; l; l = next) {
		next = l->next;
		if (!ran && l->started)
			l->started(l);
		else if (ran && l->exited)
			l->exited(l);
	}
	if (!ran)
		free_process(p);
}

static const struct command_ops ops = { .started = on_started,
					.output = on_output,
					.congested = is_congested,
					.input_ready = on_input_ready,
					.done = on_done };

/* ---- the end ------------------------------------------------------------------------------- */

static void free_process(struct process *p)
{
	struct processes *all = p->owner;

	while (p->listeners) {
		struct process_listener *l = p->listeners;

		process_unlisten(l);
		if (l->forgotten)
			l->forgotten(l);
	}
	for (struct process **at = &all->first; *at; at = &(*at)->next)
		if (*at == p) {
			*at = p->next;
			break;
		}
	all->n--;
	if (!p->exited) {
		all->n_alive--;
		write_end(p);
	}
	timer_cancel(&p->forget);
	command_release(&p->command);
	for (size_t i = 0; i < COMMAND_STREAMS; i++)
		spool_free(&p->spool[i]);
	json_decref(p->cmd);
	json_decref(p->args);
	json_decref(p->cwd);
	free(p);
}

void process_remove(struct process *p)
{
	free_process(p);
}

void processes_free(struct sandbox *s)
{
	struct processes *all = s->processes;

	while (all && all->first)
		free_process(all->first);
	free(all);
	s->processes = NULL;
}

/* ---- the beginning ------------------------------------------------------------------------- */

/* Make room for one more process: if there are too many, forget the one that ended first. */
static int make_room(struct sandbox *s, struct refusal *why)
{
	struct processes *all = s->processes;

	if (!all) {
		all = s->processes = calloc(1, sizeof(*all));
		if (!all)
			return refusal_no_memory(why);
		all->sandbox = s;
	}
	if (all->n_alive >= PROCESSES_ALIVE) {
		(void)refusal_set(why, REFUSAL_TOO_MANY, "too_many_processes", NULL,
				  "end one, or wait for one",
				  "64 processes run in this sandbox already");
		why->retry_after_s = 1;
		return -1;
	}
	struct process *oldest = NULL;

	for (struct process *p = all->first; p; p = p->next)
		if (p->exited && (!oldest || p->ended_ms < oldest->ended_ms))
			oldest = p;
	if (all->n >= PROCESSES_MAX && oldest)
		free_process(oldest);
	return 0;
}

static int make_line(struct process *p, struct sandbox *s, const json_t *body, struct refusal *why)
{
	json_t *packages = s->sandboxes->hooks->packages.env(s);
	struct command_words w = {
		.program = json_string_value(json_object_get(body, "cmd")),
		.args = json_object_get(body, "args"),
		.image_env = s->image->env,
		.packages_env = packages,
		.sandbox_env = s->vars,
		.env = json_object_get(body, "env"),
		.cwd = json_string_value(json_object_get(body, "cwd")),
		.terminal = p->command.pty,
	};

	if (strcmp(w.program, "python") == 0)
		w.other = "python3";
	int r = command_line_make(&w, &p->command.line, why);

	json_decref(packages);
	return r;
}

static uint16_t size_of(const json_t *body, const char *name, uint16_t fallback)
{
	const json_t *v = json_object_get(body, name);

	return json_is_integer(v) ? (uint16_t)json_integer_value(v) : fallback;
}

static void fill(struct process *p, struct sandbox *s, const json_t *body)
{
	struct command *c = &p->command;

	random_id(p->id);
	p->owner = s->processes;
	p->forget.fn = on_forget;
	p->forget.arg = p;
	for (size_t i = 0; i < COMMAND_STREAMS; i++)
		spool_init(&p->spool[i], s->sandboxes->spools, SPOOL_CAP);
	c->ops = &ops;
	c->owner = p;
	c->alone = true;
	c->pty = json_is_true(json_object_get(body, "pty"));
	c->rows = size_of(body, "rows", ROWS);
	c->cols = size_of(body, "cols", COLS);
	c->timeout_ms = schema_ms(body, "timeout");
	c->input_end = !c->pty && !json_is_true(json_object_get(body, "stdin"));
	buf_init(&c->input, COMMAND_INPUT_MAX);
}

int process_new(struct sandbox *s, const json_t *body, struct process_listener *l,
		struct refusal *ret)
{
	if (policy_process(s->sandboxes->admission, s->owner, ret) < 0 || make_room(s, ret) < 0)
		return -1;
	struct process *p = calloc(1, sizeof(*p));

	if (!p) {
		(void)refusal_no_memory(ret);
		return -1;
	}
	fill(p, s, body);
	if (make_line(p, s, body, ret) < 0 ||
	    audit_command(s, p->id, kind_of(p), &p->command.line, p->command.timeout_ms, ret) < 0) {
		command_line_free(&p->command.line);
		free(p);
		return -1;
	}
	p->cmd = json_incref(json_object_get(body, "cmd"));
	p->args = json_incref(json_object_get(body, "args"));
	p->cwd = json_string(p->command.line.cwd);
	struct process **at = &p->owner->first;

	while (*at)
		at = &(*at)->next;
	*at = p;
	p->owner->n++;
	p->owner->n_alive++;
	process_listen(p, l);
	command_run(&p->command, s);
	return 0;
}

/* ---- lookup and JSON ----------------------------------------------------------------------- */

struct process *process_find(struct sandbox *s, const char *id)
{
	for (struct process *p = s->processes ? s->processes->first : NULL; p; p = p->next)
		if (p->started && strcmp(p->id, id) == 0)
			return p;
	return NULL;
}

size_t processes_alive(const struct sandbox *s)
{
	return s->processes ? s->processes->n_alive : 0;
}

void process_members(const struct process *p, struct json *j)
{
	json_member_str(j, "process_id", p->id);
	json_member_str(j, "state", p->exited ? "exited" : "running");
	json_member_int(j, "pid", p->command.pid);
	if (p->exited) {
		json_member_int(j, "exit_code", p->command.verdict.exit_code);
		exec_cause_members(&p->command.verdict, j);
		json_member_str(j, "files", p->command.gone ? "lost" : "kept");
	}
	json_member_uint(j, "epoch", p->owner->sandbox->epoch);
	time_json(j, "started_at", p->started_ms);
	if (p->exited)
		time_json(j, "ended_at", p->ended_ms);
	json_member_uint(j, "stdout_bytes", p->spool[COMMAND_STDOUT].bytes);
	json_member_uint(j, "stderr_bytes", p->spool[COMMAND_STDERR].bytes);
}

void process_json(const struct process *p, struct json *j)
{
	json_t *word;
	size_t i;

	json_object_begin(j);
	process_members(p, j);
	json_member_str(j, "cmd", json_string_value(p->cmd));
	json_key(j, "args");
	json_array_begin(j);
	json_array_foreach(p->args, i, word) json_str(j, json_string_value(word));
	json_array_end(j);
	json_member_str(j, "cwd", json_string_value(p->cwd));
	json_member_bool(j, "pty", p->command.pty);
	json_member_bool(j, "truncated",
			 p->spool[COMMAND_STDOUT].loss != SPOOL_WHOLE ||
				 p->spool[COMMAND_STDERR].loss != SPOOL_WHOLE);
	json_object_end(j);
}

void processes_json(const struct sandbox *s, struct json *j)
{
	json_key(j, "processes");
	json_array_begin(j);
	for (const struct process *p = s->processes ? s->processes->first : NULL; p; p = p->next)
		if (p->started)
			process_json(p, j);
	json_array_end(j);
}

const struct process *processes_next(const struct sandbox *s, const struct process *p)
{
	p = p ? p->next : s->processes ? s->processes->first : NULL;
	while (p && !p->started)
		p = p->next;
	return p;
}
