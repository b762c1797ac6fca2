/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execute.c - Code in a kernel, over HTTP: of a session (POST /execute), of a named sandbox, and of
 * a sandbox that is made for it and ends after it.
 *
 * From the request to an execution, then between the execution and its exchange. Answered at the
 * end, the exchange and the execution point at each other until one of them is over. Streamed, they
 * do not: the execution writes the log of its record, stream_out reads it, and either may end
 * first.
 */
#include "front/api/execute.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "front/api/exec.h"
#include "front/api/handlers.h"
#include "front/cell/image_use.h"
#include "front/http/idempotency.h"
#include "front/http/reply.h"
#include "front/http/serve.h"
#include "front/operations/services.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/record.h"
#include "front/sandbox/sandbox.h"
#include "front/sandbox/sandboxes.h"
#include "front/spec/judge.h"
#include "front/support/metrics.h"
#include "front/support/refusal.h"
#include "front/support/schema.h"
#include "net/http.h"

/* ---- the request --------------------------------------------------------------------------- */

static const char *string_of(const json_t *body, const char *key)
{
	return json_string_value(json_object_get(body, key));
}

const char *ask_session(const json_t *body)
{
	return string_of(body, "session_id");
}

static const struct language *language_of(struct sandboxes *sandboxes, const json_t *body,
					  struct refusal *ret)
{
	const char *name = string_of(body, "language");
	const struct language *l = language_find(name ? name : "python");
	char there[128];

	if (l) /* whether the image has it the sandbox tells */
		return l;
	image_languages(&sandboxes->cells->images->own, there, sizeof(there));
	(void)refusal_set(ret, REFUSAL_INVALID, "unknown_language", "language", NULL,
			  "this language is unknown; there are: %s", there);
	return NULL;
}

static bool set_stdin(struct execution *x, const json_t *body)
{
	const json_t *text = json_object_get(body, "stdin");

	if (!json_is_string(text))
		return true;
	x->has_stdin = true;
	x->stdin_text = strndup(json_string_value(text), json_string_length(text));
	return x->stdin_text != NULL;
}

struct execution *ask_execution(struct sandboxes *sandboxes, const char *owner, const json_t *body,
				const struct sink *sink, void *user, struct refusal *ret)
{
	const json_t *code = json_object_get(body, "code");
	const struct language *l = language_of(sandboxes, body, ret);
	uint64_t timeout_ms;

	if (!l)
		return NULL;
	if (sandboxes->daemon->draining) {
		(void)refusal_set(ret, REFUSAL_UNAVAILABLE, "draining", NULL, NULL,
				  "the daemon is shutting down");
		ret->retry_after_s = 5;
		return NULL;
	}
	if (l->id != LANG_PYTHON && json_object_get(body, "stdin")) {
		(void)refusal_set(
			ret, REFUSAL_INVALID, "unsupported_field", "stdin",
			"put the text into the code, or use the WebSocket where the language can ask",
			"only python reads lines that come with the request");
		return NULL;
	}
	if (policy_execution(sandboxes->admission, owner, schema_ms(body, "timeout"), &timeout_ms,
			     ret) < 0)
		return NULL;
	struct execution *x = execution_new(sandboxes, l, json_string_value(code),
					    json_string_length(code), timeout_ms, sink, user);

	if (x && set_stdin(x, body)) {
		x->admitted = true;
		return x;
	}
	if (x)
		execution_free(x);
	(void)refusal_no_memory(ret);
	return NULL;
}

bool ask_format(struct http_exchange *x, const json_t *body, enum stream_format *ret)
{
	*ret = stream_format_of(x, json_is_true(json_object_get(body, "stream")));
	if (*ret == STREAM_NONE)
		return idempotency_begin(x);
	if (!http_header(x, "idempotency-key"))
		return true;
	reply_error(x, 422, "unsupported_field", "Idempotency-Key",
		    "resume a stream by its execution id, or leave out `stream`",
		    "a stream cannot be answered again");
	return false;
}

/* ---- one answer ---------------------------------------------------------------------------- */

static void answer(struct execution *e)
{
	struct http_exchange *x = context_done(e->user);

	if (e->refusal.kind)
		reply_refusal(x, &e->refusal);
	else
		reply_json(x, 200, execution_answer_json(e));
}

/* The client went away; another request with its Idempotency-Key may ask for the answer. */
static void keep_answer(struct execution *e)
{
	const struct buf *b = e->refusal.kind ? NULL : execution_answer_json(e);

	if (b && !b->err)
		idempotency_answer(e->user, 200, buf_str(b), b->len);
	else
		idempotency_drop(e->user);
}

static const struct sink answer_sink = { .done = answer };
static const struct sink kept_sink = { .done = keep_answer };

static void on_gone(struct request_context *v)
{
	struct execution *e = v->work;
	struct idempotency *i = e ? idempotency_take(e->user) : NULL;

	v->work = NULL;
	if (i) {
		e->sink = &kept_sink;
		e->user = i;
	} else if (e) {
		execution_cancel(e);
	}
}

/* ---- events -------------------------------------------------------------------------------- */

/* The last event comes with the end of the record. */
static void stream_done(struct execution *e)
{
	if (e->refusal.kind)
		metric_error(e->refusal.code);
}

static const struct sink stream_sink = { .congested = execution_readers_behind,
					 .done = stream_done };

static void on_drained(void *arg)
{
	execution_resume(arg);
}

static void cancel(struct deferred *d)
{
	execution_cancel(d->arg);
}

/* Later, because a reader may find itself lost while the execution writes an event. */
static void on_deserted(void *arg)
{
	struct execution *e = arg;

	if (e->sandbox && e->sandbox->name[0])
		return;
	e->deserted.fn = cancel;
	e->deserted.arg = e;
	loop_defer(e->sandboxes->loop, &e->deserted);
}

static const struct stream_ops stream_ops = { .drained = on_drained, .deserted = on_deserted };

bool execution_record_events(struct execution *e, struct sandbox *s)
{
	return execution_keep(e, s) && record_stream(e->record, &stream_ops, e);
}

/* ---- both ---------------------------------------------------------------------------------- */

static bool keep(struct execution *e, struct sandbox *s, enum stream_format format)
{
	if (format != STREAM_NONE)
		return execution_record_events(e, s);
	return !s->name[0] || execution_keep(e, s);
}

/* Queue @e, just made, in @s, and answer @x: with the result, or with the events as they come. */
static void queue_and_reply(struct http_exchange *x, struct sandbox *s, struct execution *e,
			    enum stream_format format)
{
	context_execution(x, e->id);
	if (!keep(e, s, format)) {
		if (e->record)
			record_drop(e->record);
		execution_free(e);
		sandbox_step(s); /* one without a name has nothing to do, and ends */
		reply_no_memory(x);
		return;
	}
	http_add_header(x, "X-Execution-Id", e->id);
	if (format == STREAM_NONE) {
		e->sink = &answer_sink;
		e->user = x;
		context_wait(x, e, on_gone);
		sandbox_queue(s, e);
		return;
	}
	/* The log outlives the execution, which the sandbox may refuse at once. */
	struct stream_log *log = stream_log_ref(e->record->log);

	e->sink = &stream_sink;
	sandbox_queue(s, e);
	stream_out_begin(x, log, 0, format);
	stream_log_unref(log);
}

/* ---- the routes ---------------------------------------------------------------------------- */

/* POST /execute: in the session that it names, which is made if need be, or in a new sandbox. */
static void run_in_session(struct services *services, struct http_exchange *x, const json_t *body,
			   enum stream_format format)
{
	const char *owner = context_of(x)->owner;
	struct refusal why;
	struct execution *e = ask_execution(services->sandboxes, owner, body, NULL, NULL, &why);
	struct sandbox *s =
		e ? sandbox_obtain(services->sandboxes, owner, ask_session(body), body, &why) :
		    NULL;

	if (s) {
		e->write_result = execution_json;
		queue_and_reply(x, s, e, format);
		return;
	}
	if (e)
		execution_free(e);
	reply_refusal(x, &why);
}

void handle_execute(struct services *services, struct http_exchange *x)
{
	const json_t *body = context_of(x)->fields;
	enum stream_format format;

	if (ask_format(x, body, &format))
		run_in_session(services, x, body, format);
}

void handle_sandbox_execute(struct sandbox *s, struct http_exchange *x)
{
	const json_t *body = context_of(x)->fields;
	enum stream_format format;
	struct refusal why;

	if (!ask_format(x, body, &format))
		return;
	struct execution *e = ask_execution(s->sandboxes, s->owner, body, NULL, NULL, &why);

	if (e)
		queue_and_reply(x, s, e, format);
	else
		reply_refusal(x, &why);
}

/*
 * In a sandbox of its own, which has no name and ends with it.
 * @shell: as a command. The kernel of bash has its code where others have their input: a script
 * that reads is a shell of its own.
 */
static void run_once(struct services *services, struct http_exchange *x, bool shell,
		     enum stream_format format)
{
	const json_t *body = context_of(x)->fields;
	const char *owner = context_of(x)->owner;
	struct execution *e = NULL;
	struct sandbox *s = NULL;
	struct sandbox_spec spec;
	struct refusal why;

	if (sandbox_spec_parse(services->sandboxes->admission, owner, body, &spec, &why) < 0) {
		reply_refusal(x, &why);
		return;
	}
	if (!shell)
		e = ask_execution(services->sandboxes, owner, body, NULL, NULL, &why);
	if (shell || e)
		s = sandbox_create(services->sandboxes, owner, NULL, &spec, &why);
	if (!s) {
		if (e)
			execution_free(e);
		sandbox_spec_free(&spec);
		reply_refusal(x, &why);
	} else if (e) {
		queue_and_reply(x, s, e, format);
	} else {
		exec_begin(x, s, body, format);
		sandbox_step(s); /* what was refused leaves it empty, and it ends here */
	}
}

void handle_run_python(struct services *services, struct http_exchange *x)
{
	enum stream_format format;

	if (ask_format(x, context_of(x)->fields, &format))
		run_once(services, x, false, format);
}

void handle_run_shell(struct services *services, struct http_exchange *x)
{
	json_t *body = context_of(x)->fields;
	bool reads = json_object_get(body, "stdin") != NULL;
	enum stream_format format;

	if (!ask_format(x, body, &format))
		return;
	if (reads || (json_object_set(body, "code", json_object_get(body, "script")) == 0 &&
		      json_object_set_new(body, "language", json_string("bash")) == 0))
		run_once(services, x, reads, format);
	else
		reply_no_memory(x);
}
