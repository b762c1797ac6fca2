/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c - execute_request: an execution whose events are messages.
 *
 * execute_input, the output of the code, execute_reply; busy before and idle after (jrequest.c). A
 * limit that was hit is an error as any exception is, with its cause as name. When an interpreter
 * ended, its status is `restarting`: the next code finds a new one. The reply has that as well
 * (`state`), because a client that waits only for the reply would have to guess.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "front/jupyter/jupyter.h"
#include "front/sandbox/event.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/sandboxes.h"
#include "front/support/json_alloc.h"
#include "front/support/metrics.h"

#define CODE_MAX (8u << 20)

static bool flag(const json_t *content, const char *key, bool fallback)
{
	const json_t *v = json_object_get(content, key);

	return json_is_boolean(v) ? json_is_true(v) : fallback;
}

/* ---- what the code says -------------------------------------------------------------------- */

static void put(struct json *j, const char *key, const json_t *value, const char *fallback)
{
	if (value)
		json_member_value(j, key, value);
	else
		json_member_raw(j, key, fallback);
}

/* `metadata` of a bundle. If a part of the bundle is left out, a mark there tells so: the messages
 * have no other place for it. */
static void put_metadata(struct json *j, const json_t *metadata, bool truncated)
{
	json_t *marked = truncated ? json_object() : NULL;

	if (!marked) {
		put(j, "metadata", metadata, "{}");
		return;
	}
	if (json_is_object(metadata))
		(void)json_object_update(marked, (json_t *)metadata);
	(void)json_object_set_new(marked, "caisson", json_pack("{s:b}", "truncated", 1));
	put(j, "metadata", marked, "{}");
	json_decref(marked);
}

static void say_stream(struct jrequest *r, const struct event *ev)
{
	_buf_ struct buf b = BUF_INIT(JUPYTER_MESSAGE_MAX);
	struct json j;

	json_init(&j, &b);
	json_object_begin(&j);
	json_member_str(&j, "name", event_name(ev->kind));
	json_key(&j, "text");
	(void)json_strn(&j, ev->text, ev->len);
	json_object_end(&j);
	if (json_finish(&j) == 0)
		jkernel_publish(r->kernel, r, "stream", &b);
}

static void say_display(struct jrequest *r, const json_t *event)
{
	_buf_ struct buf b = BUF_INIT(JUPYTER_MESSAGE_MAX);
	const json_t *id = json_object_get(event, "display_id");
	bool update = json_is_true(json_object_get(event, "update"));
	struct json j;

	json_init(&j, &b);
	json_object_begin(&j);
	put(&j, "data", json_object_get(event, "data"), "{}");
	put_metadata(&j, json_object_get(event, "metadata"),
		     json_is_true(json_object_get(event, "truncated")));
	json_member_object(&j, "transient");
	if (json_is_string(id))
		put(&j, "display_id", id, "\"\"");
	json_object_end(&j);
	json_object_end(&j);
	if (json_finish(&j) == 0)
		jkernel_publish(r->kernel, r, update ? "update_display_data" : "display_data", &b);
}

static void say_result(struct jrequest *r, const struct event *ev)
{
	_buf_ struct buf b = BUF_INIT(JUPYTER_MESSAGE_MAX);
	struct json j;

	json_init(&j, &b);
	json_object_begin(&j);
	json_member_uint(&j, "execution_count", r->count);
	json_member_value(&j, "data", ev->members);
	put_metadata(&j, ev->metadata, ev->truncated);
	json_object_end(&j);
	if (json_finish(&j) == 0)
		jkernel_publish(r->kernel, r, "execute_result", &b);
}

/* Content of `error`; the reply repeats it. */
static void write_error(struct jrequest *r, const char *name, const char *value,
			const json_t *traceback)
{
	struct json j;

	buf_clear(&r->error);
	json_init(&j, &r->error);
	json_object_begin(&j);
	json_member_str(&j, "ename", name);
	json_member_str(&j, "evalue", value);
	if (traceback) {
		put(&j, "traceback", traceback, "[]");
	} else {
		_buf_ struct buf line = BUF_INIT(4096);

		(void)buf_printf(&line, "%s: %s", name, value);
		json_member_array(&j, "traceback");
		(void)json_strn(&j, buf_str(&line), line.len);
		json_array_end(&j);
	}
	json_object_end(&j);
	if (json_finish(&j) < 0) {
		buf_clear(&r->error);
		(void)buf_puts(&r->error,
			       "{\"ename\":\"Error\",\"evalue\":\"too large\",\"traceback\":[]}");
	}
	r->failed = true;
}

/* It is said at the end: only then is it known whether the code failed by itself, or was ended. */
static void take_error(struct jrequest *r, const json_t *event)
{
	const char *name = json_string_value(json_object_get(event, "name"));
	const char *value = json_string_value(json_object_get(event, "value"));

	write_error(r, name ? name : "Error", value ? value : "",
		    json_object_get(event, "traceback"));
}

static void say_question(struct jrequest *r, const json_t *event)
{
	_buf_ struct buf b = BUF_INIT(1u << 20);
	struct json j;

	r->question = json_integer_value(json_object_get(event, "id"));
	r->asked = true;
	json_init(&j, &b);
	json_object_begin(&j);
	put(&j, "prompt", json_object_get(event, "prompt"), "\"\"");
	json_member_bool(&j, "password", json_is_true(json_object_get(event, "password")));
	json_object_end(&j);
	if (json_finish(&j) == 0)
		jrequest_send(r, JCHANNEL_STDIN, "input_request", &b);
}

static void on_event(struct execution *x, const struct event *ev)
{
	_buf_ struct buf b = BUF_INIT(256);
	struct jrequest *r = x->user;

	switch (ev->kind) {
	case EVENT_STDOUT:
	case EVENT_STDERR:
		say_stream(r, ev);
		break;
	case EVENT_DISPLAY:
		say_display(r, ev->members);
		break;
	case EVENT_RESULT:
		if (!r->silent)
			say_result(r, ev);
		break;
	case EVENT_ERROR:
		take_error(r, ev->members);
		break;
	case EVENT_INPUT_REQUEST:
		say_question(r, ev->members);
		break;
	case EVENT_CLEAR_OUTPUT:
		event_json(ev, &b);
		jkernel_publish(r->kernel, r, event_name(ev->kind), &b);
		break;
	case EVENT_KINDS_:
		break;
	}
}

/* ---- the end ------------------------------------------------------------------------------- */

static bool congested(struct execution *x)
{
	const struct jrequest *r = x->user;

	return jkernel_congested(r->kernel);
}

void jrun_note(struct jrequest *r, const struct execution *x)
{
	r->reset |= x->state && strcmp(x->state, "reset") == 0;
	r->lost |= x->cell_gone;
}

void jrun_reply(struct jrequest *r, const struct buf *expressions)
{
	_buf_ struct buf b = BUF_INIT(JUPYTER_MESSAGE_MAX);
	struct jkernel *k = r->kernel;
	/* A restart has already aborted the requests before it. */
	bool stop = r->failed && r != k->cut && flag(r->content, "stop_on_error", true);
	struct json j;

	json_init(&j, &b);
	json_object_begin(&j);
	json_member_str(&j, "status", r->failed ? "error" : "ok");
	json_member_uint(&j, "execution_count", r->count);
	json_member_str(&j, "state", r->reset ? "reset" : "kept");
	json_member_str(&j, "files", r->lost ? "lost" : "kept");
	if (r->failed) { /* its members, beside ours */
		json_t *error =
			json_alloc_load(buf_str(&r->error), r->error.len, JSON_ALLOW_NUL, NULL);
		const char *key;
		json_t *value;

		json_object_foreach(error, key, value) put(&j, key, value, "null");
		json_decref(error);
	} else {
		json_member_array(&j, "payload");
		json_array_end(&j);
		json_key(&j, "user_expressions");
		json_raw(&j, expressions && expressions->len ? buf_str(expressions) : "{}",
			 expressions && expressions->len ? expressions->len : 2);
	}
	json_object_end(&j);
	if (json_finish(&j) == 0)
		jrequest_send(r, r->channel, "execute_reply", &b);
	if (stop)
		jrequest_abort_rest(k);
	jrequest_end(r);
}

/* The state that is left, for a person who wants to go on. */
static const char *left_of(const struct execution *x)
{
	if (x->cell_gone)
		return "the sandbox was ended: variables and files outside of a workspace are gone";
	return x->kernel_ended ? "the interpreter was ended: variables are gone, files are kept" :
				 "variables are kept";
}

/* The code's own error, if it reported one, stays above it as the traceback; without @name it keeps
 * its name, too. */
static void end_with(struct jrequest *r, const char *name, const char *value)
{
	json_t *own = r->failed ? json_alloc_load(buf_str(&r->error), r->error.len, JSON_ALLOW_NUL,
						  NULL) :
				  NULL;
	const char *ename = json_string_value(json_object_get(own, "ename"));
	const char *evalue = json_string_value(json_object_get(own, "evalue"));
	json_t *lines = json_object_get(own, "traceback");

	if (json_is_array(lines))
		(void)json_array_append_new(lines, json_sprintf("%s%s%s", name ? name : "",
								name ? ": " : "", value));
	if (name)
		write_error(r, name, value, lines);
	else
		write_error(r, ename ? ename : "Error", evalue ? evalue : "", lines);
	json_decref(own);
}

/*
 * An exception of the code's own keeps its name, with the limit that it may have run into below it.
 * An execution that was ended from outside has the name of that cause: the exception is then only
 * how the code noticed it.
 */
static void judge_end(struct execution *x, struct jrequest *r)
{
	enum result_cause cause = x->verdict.cause;
	const char *hint = x->verdict.hint;
	_buf_ struct buf b = BUF_INIT(2048);

	if (r == r->kernel->cut) {
		end_with(
			r, "restarted",
			"the kernel was restarted while this ran; variables are gone, files are kept");
	} else if (cause == CAUSE_INTERRUPT &&
		   (r->failed || (x->reported_done && !x->exit_status))) {
		return; /* its own words, or it heard of it and went on to its end */
	} else if (cause == CAUSE_WALL || (cause != CAUSE_NONE && !r->failed)) {
		(void)buf_printf(&b, "%s; %s", hint, left_of(x));
		end_with(r, cause == CAUSE_WALL ? "timeout" : result_cause_name(cause),
			 buf_str(&b));
	} else if (!r->failed && x->kernel_ended) {
		(void)buf_printf(
			&b,
			"the interpreter ended itself with exit code %d; its variables are lost%s%s",
			x->verdict.exit_code, hint[0] ? "; " : "", hint);
		end_with(r, "exit", buf_str(&b));
	} else if (!r->failed) {
		(void)buf_printf(&b, "%d%s%s", x->verdict.exit_code, hint[0] ? ": " : "", hint);
		end_with(r, "exit status", buf_str(&b));
	} else if (hint[0]) {
		end_with(r, NULL, hint);
	}
}

/* Of code that went well: a command in it may have failed. */
static void say_hint(struct jrequest *r, const char *hint)
{
	_buf_ struct buf text = BUF_INIT(1024);

	(void)buf_printf(&text, "caisson: %s\n", hint);
	const struct event ev = { .kind = EVENT_STDERR, .text = buf_str(&text), .len = text.len };

	say_stream(r, &ev);
}

static void judge(struct execution *x, struct jrequest *r)
{
	if (x->refusal.kind) {
		metric_error(x->refusal.code);
		write_error(r, x->refusal.code, x->refusal.message, NULL);
	} else if (x->verdict.status != RESULT_OK) {
		judge_end(x, r);
	} else if (x->verdict.hint[0]) {
		say_hint(r, x->verdict.hint);
	}
	if (r->failed)
		jkernel_publish(r->kernel, r, "error", &r->error);
}

static void on_done(struct execution *x)
{
	struct jrequest *r = x->user;
	json_t *expressions = json_object_get(r->content, "user_expressions");

	r->running = NULL;
	jrun_note(r, x);
	judge(x, r);
	if (!r->failed && x->language->id == LANG_PYTHON && json_object_size(expressions) > 0)
		jquery_expressions(r, expressions);
	else
		jrun_reply(r, NULL);
}

static const struct sink plain = {
	.event = on_event, .congested = congested, .done = on_done, .errors_apart = true
};
static const struct sink asking = { .event = on_event,
				    .can_answer = true,
				    .patient = true,
				    .congested = congested,
				    .done = on_done,
				    .errors_apart = true };

/* ---- the beginning ------------------------------------------------------------------------- */

static void say_input(struct jrequest *r, const json_t *code)
{
	_buf_ struct buf b = BUF_INIT(JUPYTER_MESSAGE_MAX);
	struct json j;

	json_init(&j, &b);
	json_object_begin(&j);
	put(&j, "code", code, "\"\"");
	json_member_uint(&j, "execution_count", r->count);
	json_object_end(&j);
	if (json_finish(&j) == 0)
		jkernel_publish(r->kernel, r, "execute_input", &b);
}

void jrun_execute(struct jrequest *r)
{
	struct jkernel *k = r->kernel;
	struct sandboxes *sandboxes = k->sandbox->sandboxes;
	const json_t *code = json_object_get(r->content, "code");
	size_t len = json_string_length(code);

	r->silent = flag(r->content, "silent", false);
	bool store = !r->silent && flag(r->content, "store_history", true);

	if (!json_is_string(code) || len > CODE_MAX) {
		r->count = k->count;
		write_error(r, "ValueError", "content.code is a string of at most 8 MiB", NULL);
		jrun_reply(r, NULL);
		return;
	}
	if (store)
		jhistory_add(&k->history, ++k->count, json_string_value(code));
	r->count = k->count;
	if (!r->silent)
		say_input(r, code);
	jbackground_parent(k, r->header);
	r->running = execution_new(sandboxes, k->language, json_string_value(code), len,
				   sandboxes->daemon->config.max_timeout_ms,
				   flag(r->content, "allow_stdin", true) ? &asking : &plain, r);
	if (r->running) {
		r->running->count = store ? r->count : 0;
		sandbox_queue(k->sandbox, r->running);
		return;
	}
	write_error(r, "out_of_memory", "the daemon is out of memory", NULL);
	jrun_reply(r, NULL);
}

/* ---- the rest of the conversation ---------------------------------------------------------- */

void jrun_answer(struct jkernel *k, const json_t *content)
{
	struct jrequest *r = k->first;
	const char *value = json_string_value(json_object_get(content, "value"));

	if (!r || !r->running || !r->asked || !value)
		return;
	r->asked = false;
	execution_answer(r->running, r->question, value, NULL);
}

void jrun_resume(struct jkernel *k)
{
	if (k->first && k->first->running && !jkernel_congested(k))
		execution_resume(k->first->running);
}
