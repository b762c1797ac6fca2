/* SPDX-License-Identifier: Apache-2.0 */
/* handle_processes.c - Background processes of a sandbox: start, ask, feed, signal, wait, end. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "front/api/find_sandbox.h"
#include "front/api/handlers.h"
#include "front/api/spool_reply.h"
#include "front/http/idempotency.h"
#include "front/http/reply.h"
#include "front/http/serve.h"
#include "front/sandbox/process.h"
#include "front/sandbox/sandboxes.h"
#include "front/support/schema.h"
#include "net/http.h"

#define ONE_MAX (8u << 20)
#define LIST_MAX (64u << 20)
#define WAIT_MS 60000u

/* ---- finding and answering ----------------------------------------------------------------- */

struct process *own_process(struct sandbox *s, struct http_exchange *x)
{
	struct process *found = process_find(s, context_param(x, 1));

	if (!found)
		reply_missing(x, s, "no_such_process", "process_id",
			      "see GET /v1/sandboxes/{name}/processes; they are kept for 5 minutes",
			      "there is no such process, or it is not kept any more");
	return found;
}

static void reply_process(struct http_exchange *x, int status, const struct process *p)
{
	struct reply answer;

	process_json(p, reply_begin(&answer, ONE_MAX));
	reply_end(&answer, x, status);
}

/* ---- one who waits ------------------------------------------------------------------------- */

/* An exchange that is answered when something happens to a process. */
struct waiter {
	struct process_listener listener;
	struct http_exchange *x;         /* NULL: its client went away... */
	struct idempotency *idempotency; /* ...but may ask again */
	struct timer timer;
};

static struct http_exchange *waiter_free(struct waiter *w)
{
	struct http_exchange *x = context_done(w->x);

	timer_cancel(&w->timer);
	process_unlisten(&w->listener);
	free(w);
	return x;
}

static void waiter_gone(struct request_context *v)
{
	(void)waiter_free(v->work);
}

static struct waiter *waiter_new(struct http_exchange *x)
{
	struct waiter *w = calloc(1, sizeof(*w));

	if (!w) {
		reply_no_memory(x);
		return NULL;
	}
	w->x = x;
	w->listener.arg = w;
	w->timer.arg = w;
	context_wait(x, w, waiter_gone);
	return w;
}

/* ---- starting ------------------------------------------------------------------------------ */

static void keep_answer(struct idempotency *i, const struct process *p)
{
	_buf_ struct buf b = BUF_INIT(ONE_MAX);
	struct json j;

	json_init(&j, &b);
	process_json(p, &j);
	if (p->started && json_finish(&j) == 0)
		idempotency_answer(i, 201, buf_str(&b), b.len);
	else
		idempotency_drop(i);
}

static void start_gone(struct request_context *v)
{
	struct waiter *w = v->work;

	w->idempotency = idempotency_take(w->x);
	if (w->idempotency) {
		w->x = NULL;
		v->work = NULL;
	} else {
		(void)waiter_free(w);
	}
}

static void on_started(struct process_listener *l)
{
	struct process *p = l->process;
	struct idempotency *key = ((struct waiter *)l->arg)->idempotency;
	struct http_exchange *x = waiter_free(l->arg);
	const struct command *c = &p->command;

	if (!x)
		keep_answer(key, p);
	else if (p->started)
		reply_process(x, 201, p);
	else if (c->refusal.kind)
		reply_refusal(x, &c->refusal);
	else if (c->not_started)
		reply_error(x, 422, "cannot_start", "cmd", NULL, "%s", c->verdict.hint);
	else
		reply_error(x, 409, "session_ended", NULL, NULL,
			    "the sandbox was stopped or removed before the process had started");
}

void handle_process_start(struct sandbox *s, struct http_exchange *x)
{
	struct waiter *w = idempotency_begin(x) ? waiter_new(x) : NULL;
	struct refusal why;

	if (!w)
		return;
	w->listener.started = on_started;
	context_of(x)->gone = start_gone;
	if (s->sandboxes->daemon->draining) {
		(void)waiter_free(w);
		reply_retry(x, 503, 5, "draining", NULL, "the daemon is shutting down");
	} else if (process_new(s, context_of(x)->fields, &w->listener, &why) < 0) {
		(void)waiter_free(w);
		reply_refusal(x, &why);
	}
}

/* ---- asking -------------------------------------------------------------------------------- */

void handle_process_list(struct sandbox *s, struct http_exchange *x)
{
	struct reply answer;
	struct json *j = reply_object(&answer, LIST_MAX);

	processes_json(s, j);
	reply_end(&answer, x, 200);
}

void handle_process_get(struct sandbox *s, struct http_exchange *x)
{
	const struct process *found = own_process(s, x);

	if (found)
		reply_process(x, 200, found);
}

void handle_process_output(struct sandbox *s, struct http_exchange *x)
{
	const struct process *found = own_process(s, x);

	if (found)
		output_reply(x,
			     &found->spool[output_is_stderr(x) ? COMMAND_STDERR : COMMAND_STDOUT],
			     found->exited);
}

static void on_waited(struct process_listener *l)
{
	const struct process *p = l->process;

	reply_process(waiter_free(l->arg), 200, p);
}

static void on_wait_forgotten(struct process_listener *l)
{
	reply_error(waiter_free(l->arg), 404, "no_such_process", "process_id", NULL,
		    "the process was removed meanwhile");
}

static void on_wait_late(struct timer *t)
{
	struct waiter *w = t->arg;

	on_waited(&w->listener);
}

void handle_process_wait(struct sandbox *s, struct http_exchange *x)
{
	const json_t *body = context_of(x)->fields;
	struct process *found = own_process(s, x);
	uint64_t ms = json_object_get(body, "timeout") ? schema_ms(body, "timeout") : WAIT_MS;

	if (!found)
		return;
	if (found->exited || ms == 0) {
		reply_process(x, 200, found);
		return;
	}
	struct waiter *w = waiter_new(x);

	if (!w)
		return;
	w->listener.exited = on_waited;
	w->listener.forgotten = on_wait_forgotten;
	w->timer.fn = on_wait_late;
	process_listen(found, &w->listener);
	timer_after(s->sandboxes->loop, &w->timer, ms * CLOCK_NS_PER_MS);
}

/* ---- acting -------------------------------------------------------------------------------- */

void handle_process_signal(struct sandbox *s, struct http_exchange *x)
{
	struct process *found = own_process(s, x);
	const char *name = found ? context_text(x, "signal") : NULL;
	int signo = process_signal_number(name ? name : "TERM");

	if (found && !signo)
		reply_error(x, 422, "invalid_value", "signal", "as in \"TERM\", \"INT\" or \"9\"",
			    "there is no such signal");
	else if (found && !command_signal(&found->command, signo, true))
		reply_error(x, 409, "not_running", NULL, NULL, "the process has ended");
	else if (found)
		reply_process(x, 200, found);
}

/* The bytes of a request; false when it was answered. */
static bool input_of(struct http_exchange *x, const json_t *body, struct buf *out)
{
	const json_t *text = json_object_get(body, "data");
	const json_t *coded = json_object_get(body, "data_base64");

	if (text && coded) {
		reply_error(x, 422, "invalid_value", "data_base64", "send one of them",
			    "'data' and 'data_base64' exclude each other");
		return false;
	}
	if (text)
		(void)buf_append(out, json_string_value(text), json_string_length(text));
	if (coded && !base64_decode(json_string_value(coded), json_string_length(coded), out)) {
		reply_error(x, 422, "invalid_value", "data_base64", "RFC 4648, padded, one line",
			    "'data_base64' is invalid base64");
		return false;
	}
	return true;
}

static void feed(struct http_exchange *x, struct process *p, const json_t *body)
{
	_buf_ struct buf data = BUF_INIT((size_t)http_config_of(x)->body_max);
	int r = 0;

	if (!input_of(x, body, &data))
		return;
	if (p->exited || !command_input_open(&p->command)) {
		reply_error(x, 409, p->exited ? "not_running" : "stdin_closed", NULL,
			    "start it with \"stdin\": true to write to it",
			    p->exited ? "the process has ended" : "its stdin is closed");
		return;
	}
	if (data.len > 0)
		r = command_input(&p->command, buf_str(&data), data.len);
	if (r == -EAGAIN) {
		reply_retry(x, 429, 1, "stdin_full", "write less at a time",
			    "more than %u bytes would wait for the process to read them",
			    COMMAND_INPUT_MAX);
		return;
	}
	if (json_is_true(json_object_get(body, "close")))
		command_input_end(&p->command);
	reply_process(x, 200, p);
}

void handle_process_stdin(struct sandbox *s, struct http_exchange *x)
{
	const json_t *body = context_of(x)->fields;
	struct process *found = own_process(s, x);

	if (found)
		feed(x, found, body);
}

void handle_process_remove(struct sandbox *s, struct http_exchange *x)
{
	struct process *found = own_process(s, x);

	if (!found)
		return;
	process_remove(found);
	reply_empty(x, 204);
}
