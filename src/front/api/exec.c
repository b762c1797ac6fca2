/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec.c - One command and the client that waits for it.
 *
 * The record of the sandbox keeps the output: the answer has its beginning, and a client can ask
 * for all of it later, by offset. When the client wants a stream, it goes as events into the
 * record's log, too. The log's readers make the command wait when they are slow.
 */
#include "front/api/exec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/list.h"
#include "front/api/execute.h"
#include "front/api/handlers.h"
#include "front/cell/image_use.h"
#include "front/http/idempotency.h"
#include "front/http/reply.h"
#include "front/http/serve.h"
#include "front/http/stream_out.h"
#include "front/output/output_text.h"
#include "front/packages/packages.h"
#include "front/sandbox/audit.h"
#include "front/sandbox/command.h"
#include "front/sandbox/event.h"
#include "front/sandbox/exec_result.h"
#include "front/sandbox/network_hint.h"
#include "front/sandbox/record.h"
#include "front/sandbox/sandboxes.h"
#include "front/spec/judge.h"
#include "front/support/log.h"
#include "front/support/metrics.h"
#include "front/support/name.h"
#include "front/support/refusal.h"
#include "front/support/schema.h"
#include "front/support/time_text.h"
#include "net/http.h"

#define ANSWER_MAX (128u << 20)
#define EVENT_MAX (1u << 20)
#define AWAY_BYTES (256u << 10) /* written while nobody reads, before the command waits */

struct exec {
	struct exec *prev, *next;
	struct sandboxes *sandboxes;
	struct sandbox *sandbox;
	struct command command;
	struct http_exchange *x;         /* waits for the one answer; NULL: nobody does */
	struct idempotency *idempotency; /* nobody does, but somebody may ask again */
	const char *kind;                /* static: exec, shell */
	char id[RECORD_ID_MAX];
	struct record *record;
	bool stream;
	struct text_joiner joiners[COMMAND_STREAMS];
	struct deferred deserted;
	uint64_t away_bytes; /* written since nobody reads any more */
};

static struct exec *all; /* that run */

/* ---- events -------------------------------------------------------------------------------- */

/* @end: nothing follows; a character that was not finished is shown as it is. */
static void event_output(struct exec *e, enum command_stream stream, const char *data, size_t len,
			 bool end)
{
	_buf_ struct buf b = BUF_INIT(EVENT_MAX), room = BUF_INIT(EVENT_MAX);
	struct event ev = { .kind = stream == COMMAND_STDOUT ? EVENT_STDOUT : EVENT_STDERR };

	ev.text = text_join(&e->joiners[stream], data, len, end, &room, &ev.len);
	if (room.err || ev.len == 0)
		return;
	event_json(&ev, &b);
	if (!b.err)
		stream_log_take(e->record->log, event_name(ev.kind), &b);
}

/* ---- the end ------------------------------------------------------------------------------- */

static void free_exec(struct exec *e)
{
	loop_undefer(e->sandboxes->loop, &e->deserted);
	idempotency_drop(e->idempotency);
	LIST_DROP(all, e);
	command_release(&e->command);
	free(e);
}

static struct http_exchange *let_go(struct exec *e)
{
	struct http_exchange *x = context_done(e->x);

	e->x = NULL;
	return x;
}

static void write_log(const struct exec *e)
{
	const struct command *c = &e->command;

	metric_execution(e->kind, result_status_name(c->verdict.status), c->outcome.wall_ns);
	log_event(LOG_LEVEL_INFO, "exec", F_STR("kind", e->kind), F_STR("owner", e->sandbox->owner),
		  F_STR("sandbox", e->sandbox->name), F_STR("execution_id", e->id),
		  F_STR("status", result_status_name(c->verdict.status)),
		  F_STR("cause", result_cause_name(c->verdict.cause)),
		  F_INT("exit_code", c->verdict.exit_code), F_MS("ms", c->outcome.wall_ns),
		  F_UINT("stdout_bytes", c->bytes[COMMAND_STDOUT]),
		  F_UINT("stderr_bytes", c->bytes[COMMAND_STDERR]));
}

static void finish_refused(struct exec *e)
{
	const struct refusal *r = &e->command.refusal;
	_buf_ struct buf b = BUF_INIT(4096);
	struct http_exchange *x = let_go(e);

	audit_refused(e->sandbox, e->id, e->kind, r);
	if (e->stream) {
		metric_error(r->code);
		refusal_json(r, &b);
		record_finish(e->record, "refused", "refused", buf_str(&b), buf_str(&b));
	} else {
		record_drop(e->record);
	}
	if (x)
		reply_refusal(x, r);
}

/* A shell would say on stderr that there is no such program. */
static void say_not_started(struct exec *e)
{
	_buf_ struct buf b = BUF_INIT(sizeof(e->command.verdict.hint) + 32);

	(void)buf_printf(&b, "caisson: %s\n", e->command.verdict.hint);
	spool_append(&e->record->err, buf_str(&b), b.len);
	if (e->stream)
		event_output(e, COMMAND_STDERR, buf_str(&b), b.len, false);
}

static void finish(struct exec *e)
{
	struct command *c = &e->command;
	_buf_ struct buf b = BUF_INIT(ANSWER_MAX);
	struct exec_result r = {
		.execution_id = e->id,
		.verdict = &c->verdict,
		.outcome = &c->outcome,
		.out = &e->record->out,
		.err = &e->record->err,
		.chars = e->sandboxes->daemon->config.max_output,
	};
	struct http_exchange *x = let_go(e);
	struct json j;

	if (c->not_started) {
		record_started(e->record);
		say_not_started(e);
	}
	if (e->stream) {
		event_output(e, COMMAND_STDOUT, "", 0, true);
		event_output(e, COMMAND_STDERR, "", 0, true);
	}
	json_init(&j, &b);
	json_object_begin(&j);
	exec_result_members(&r, &j);
	command_left_members(c, &j);
	json_object_end(&j);
	(void)json_finish(&j); /* b.err */
	const char *text = b.err ? error_unwritten(b.err) : buf_str(&b);

	write_log(e);
	audit_end(e->sandbox, e->id, e->kind, &c->verdict, &c->outcome);
	record_finish(e->record, "done", result_status_name(c->verdict.status), text, text);
	if (x)
		reply_json(x, 200, &b);
	else if (e->idempotency && b.err)
		idempotency_drop(e->idempotency);
	else if (e->idempotency)
		idempotency_answer(e->idempotency, 200, buf_str(&b), b.len);
	e->idempotency = NULL;
}

static void on_done(struct command *c)
{
	struct exec *e = c->owner;

	if (c->refusal.kind) {
		finish_refused(e);
	} else {
		network_hint(e->sandbox, c->started_ns, &e->record->out, &e->record->err, NULL,
			     &c->verdict);
		finish(e);
	}
	free_exec(e);
}

/* ---- while it runs ------------------------------------------------------------------------- */

static void on_started(struct command *c)
{
	struct exec *e = c->owner;

	record_started(e->record);
}

static void on_output(struct command *c, enum command_stream stream, const char *data, size_t len)
{
	struct exec *e = c->owner;
	bool out = stream == COMMAND_STDOUT;

	tail_add(&e->sandbox->log, data, len);
	spool_append(out ? &e->record->out : &e->record->err, data, len);
	if (!e->stream)
		return;
	event_output(e, stream, data, len, false);
	if (stream_log_readers(e->record->log) == 0)
		e->away_bytes += len;
}

/* Slow readers, and those who are away but may come back, make it wait. */
static bool is_congested(struct command *c)
{
	struct exec *e = c->owner;

	if (!e->stream)
		return false;
	return stream_log_congested(e->record->log) ||
	       (e->away_bytes > AWAY_BYTES && stream_log_readers(e->record->log) == 0);
}

static const struct command_ops ops = {
	.started = on_started, .output = on_output, .congested = is_congested, .done = on_done
};

static void on_drained(void *arg)
{
	struct exec *e = arg;

	command_resume(&e->command);
}

void exec_attached(const char *execution_id)
{
	for (struct exec *e = all; e; e = e->next)
		if (e->stream && strcmp(e->id, execution_id) == 0) {
			e->away_bytes = 0;
			command_resume(&e->command);
			return;
		}
}

bool exec_interrupt(const char *execution_id)
{
	for (struct exec *e = all; e; e = e->next)
		if (strcmp(e->id, execution_id) == 0) {
			command_stop(&e->command);
			return true;
		}
	return false;
}

static void stop(struct deferred *d)
{
	struct exec *e = d->arg;

	command_stop(&e->command);
}

/* In a sandbox without a name nobody can come back. Later, because a reader may find itself lost
 * while the command writes an event. */
static void on_deserted(void *arg)
{
	struct exec *e = arg;

	e->away_bytes = 0;
	if (!e->sandbox->name[0])
		loop_defer(e->sandboxes->loop, &e->deserted);
}

static const struct stream_ops stream_ops = { .drained = on_drained, .deserted = on_deserted };

/* The client of the one answer went away. */
static void on_gone(struct request_context *v)
{
	struct exec *e = v->work;

	e->idempotency = idempotency_take(e->x);
	v->work = NULL;
	e->x = NULL;
	if (!e->idempotency)
		command_stop(&e->command);
}

/* ---- the beginning ------------------------------------------------------------------------- */

static int make_line(struct exec *e, const json_t *body, struct refusal *why)
{
	const char *script = json_string_value(json_object_get(body, "script"));
	const char *cmd = json_string_value(json_object_get(body, "cmd"));
	const char *tail[] = { "-c", script, NULL };
	json_t *packages = packages_env(e->sandbox);
	struct command_words w = {
		.program = script ? "/bin/bash" : cmd,
		.other = script                     ? "/bin/sh" :
			 strcmp(cmd, "python") == 0 ? "python3" :
						      NULL,
		.args = json_object_get(body, "args"),
		.tail = script ? tail : NULL,
		.image_env = e->sandbox->image->env,
		.packages_env = packages,
		.sandbox_env = e->sandbox->vars,
		.env = json_object_get(body, "env"),
		.cwd = json_string_value(json_object_get(body, "cwd")),
	};

	int r = command_line_make(&w, &e->command.line, why);

	json_decref(packages);
	return r;
}

static bool set_input(struct exec *e, const json_t *text)
{
	if (json_is_string(text) &&
	    !command_preset(&e->command, json_string_value(text), json_string_length(text)))
		return false;
	e->command.input_end = true;
	return true;
}

/* It was not run, and nobody hears of it. */
static void forget(struct exec *e)
{
	if (e->record)
		record_drop(e->record);
	command_line_free(&e->command.line);
	buf_free(&e->command.input);
	free_exec(e);
}

/* NULL: @why says it. */
static struct exec *make(const struct http_exchange *x, struct sandbox *s, const json_t *body,
			 bool stream, struct refusal *why)
{
	uint64_t timeout_ms;

	if (policy_execution(s->sandboxes->admission, s->owner, schema_ms(body, "timeout"),
			     &timeout_ms, why) < 0)
		return NULL;
	struct exec *e = calloc(1, sizeof(*e));

	(void)refusal_no_memory(why);
	if (!e)
		return NULL;
	e->sandboxes = s->sandboxes;
	e->sandbox = s;
	e->kind = json_object_get(body, "script") ? "shell" : "exec";
	e->stream = stream;
	e->command.ops = &ops;
	e->command.owner = e;
	e->command.timeout_ms = timeout_ms;
	e->deserted = (struct deferred){ .fn = stop, .arg = e };
	random_id(e->id);
	context_execution(x, e->id);
	LIST_PUSH(all, e);
	if (make_line(e, body, why) == 0 && set_input(e, json_object_get(body, "stdin"))) {
		e->record = record_new(&s->records, e->id, e->kind,
				       output_reserve(s->sandboxes->daemon->config.max_output));
		if (e->record && (!stream || record_stream(e->record, &stream_ops, e)))
			return e;
	}
	forget(e);
	return NULL;
}

void exec_begin(struct http_exchange *x, struct sandbox *s, const json_t *body,
		enum stream_format format)
{
	struct refusal why;

	if (s->sandboxes->daemon->draining) {
		reply_retry(x, 503, 5, "draining", NULL, "the daemon is shutting down");
		return;
	}
	struct exec *e = make(x, s, body, format != STREAM_NONE, &why);

	if (e &&
	    audit_command(s, e->id, e->kind, &e->command.line, e->command.timeout_ms, &why) < 0) {
		forget(e);
		e = NULL;
	}
	if (!e) {
		reply_refusal(x, &why);
		return;
	}
	http_add_header(x, "X-Execution-Id", e->id);
	if (format != STREAM_NONE) {
		stream_out_begin(x, e->record->log, 0, format);
	} else {
		e->x = x;
		context_wait(x, e, on_gone);
	}
	s->executions++;
	e->record->asked_ms = time_files_ms(); /* when we hear that it runs it may be over */
	command_run(&e->command, s);
}

/* ---- the route ----------------------------------------------------------------------------- */

void handle_exec(struct sandbox *s, struct http_exchange *x)
{
	const json_t *body = context_of(x)->fields;
	enum stream_format format;

	if (ask_format(x, body, &format))
		exec_begin(x, s, body, format);
}
