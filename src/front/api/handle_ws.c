/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handle_ws.c - GET /execute/ws: executions over a WebSocket, whose client can answer input().
 *
 * In:  {"type":"execute", ...fields of POST /execute},
 *      {"type":"input_response","id":1,"value":"..."},
 *      {"type":"interrupt"}.
 * Out: {"type":"stdout","data":"..."} and the other events of a stream, each with its type, and at
 * the end {"type":"done","result":{...}} or {"type":"refused","error":{...}}; before all of them
 * {"type":"progress","text":"..."} while the image of the execution is pulled. One execution at a
 * time per socket; a second one meanwhile is refused. The events come from the log of the
 * execution's record, as for every other stream, and closing the socket means what leaving a stream
 * means (execute.h): in a session the code goes on, without a client to ask.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "front/api/execute.h"
#include "front/api/handlers.h"
#include "front/http/reply.h"
#include "front/http/serve.h"
#include "front/images/pulls.h"
#include "front/operations/operations.h"
#include "front/operations/services.h"
#include "front/sandbox/event.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/record.h"
#include "front/sandbox/sandbox.h"
#include "front/support/metrics.h"
#include "front/support/refusal.h"
#include "front/support/schema.h"
#include "net/http.h"
#include "net/ws.h"

#define OUT_MAX (128u << 20)

struct session_ws {
	struct services *services;
	struct ws *ws;
	struct execution *running;
	struct stream_reader reader; /* of its events; log NULL: none */
	struct pull_wait wait;       /* before it: for its image */
	json_t *asked;               /* the message that waits; owned */
	char owner[OWNER_MAX];
};

/* ---- out ----------------------------------------------------------------------------------- */

/* An object with its type as the first member, or under @key behind the type. */
static void send_with_type(struct session_ws *s, const char *type, const char *key,
			   const char *json, size_t len)
{
	_buf_ struct buf b = BUF_INIT(OUT_MAX);

	if (len < 2) /* it could not be written */
		b.err = -ENOMEM;
	else if (key)
		(void)buf_printf(&b, "{\"type\":\"%s\",\"%s\":", type, key);
	else
		(void)buf_printf(&b, "{\"type\":\"%s\"%s", type, len > 2 ? "," : "");
	if (len >= 2)
		(void)buf_append(&b, json + !key, len - !key);
	if (key)
		(void)buf_puts(&b, "}");
	(void)ws_send_buf(s->ws, true, &b);
}

static void send_error(struct session_ws *s, const char *code, const char *message,
		       const char *field)
{
	_buf_ struct buf b = BUF_INIT(4096);

	error_json(&b, code, message, field && *field ? field : NULL, NULL);
	send_with_type(s, "refused", NULL, buf_str(&b), b.len);
}

static void send_event(struct session_ws *s, const struct stream_event *ev)
{
	const char *key = strcmp(ev->type, event_name(EVENT_RESULT)) == 0 ? "data" :
			  strcmp(ev->type, "done") == 0                   ? "result" :
									    NULL;

	send_with_type(s, ev->type, key, ev->json, ev->len);
}

/* Without a name the execution ends with its reader; in a session it goes on. */
static void leave(struct session_ws *s)
{
	if (s->running)
		execution_leave(s->running);
	s->running = NULL;
	stream_reader_detach(&s->reader);
}

/* Send the events that the socket has room for. */
static void pump(struct session_ws *s)
{
	const struct stream_event *ev;
	bool lost = false;

	while (s->reader.log && !ws_congested(s->ws) &&
	       (ev = stream_reader_next(&s->reader, &lost)))
		send_event(s, ev);
	if (lost) {
		leave(s);
		ws_close(s->ws, 1013, "events were lost");
	} else if (s->reader.log && stream_log_ended(s->reader.log) &&
		   s->reader.next_id > stream_log_last(s->reader.log)) {
		stream_reader_detach(&s->reader);
		/* A client that does not read this result is not served further. */
		if (ws_congested(s->ws))
			ws_pause(s->ws, true);
	}
}

static void on_wake(struct stream_reader *r)
{
	pump(r->arg);
}

static void on_done(struct execution *e)
{
	struct session_ws *s = e->user;

	s->running = NULL;
	if (e->refusal.kind)
		metric_error(e->refusal.code);
}

static const struct sink ws_sink = { .can_answer = true,
				     .congested = execution_readers_behind,
				     .done = on_done };

/* ---- in ------------------------------------------------------------------------------------ */

static void send_refusal(struct session_ws *s, const struct refusal *why)
{
	_buf_ struct buf b = BUF_INIT(4096);

	refusal_json(why, &b);
	send_with_type(s, "refused", NULL, buf_str(&b), b.len);
}

static void begin(struct session_ws *s, const json_t *m, struct refusal *why)
{
	struct execution *e = ask_execution(s->services->sandboxes, s->owner, m, &ws_sink, s, why);
	struct sandbox *sandbox =
		e ? sandbox_obtain(s->services->sandboxes, s->owner, ask_session(m), m, why) : NULL;

	if (!sandbox) {
		if (e)
			execution_free(e);
		return;
	}
	if (!execution_record_events(e, sandbox)) {
		(void)refusal_no_memory(why);
		if (e->record)
			record_drop(e->record);
		execution_free(e);
		sandbox_step(sandbox); /* one without a name has nothing to do, and ends */
		return;
	}
	e->write_result = execution_json;
	s->running = e;
	s->reader = (struct stream_reader){ .wake = on_wake, .arg = s };
	(void)stream_reader_attach(&s->reader, e->record->log, 0); /* a new log has all events */
	sandbox_queue(sandbox, e);
}

static void on_pull_progress(struct pull_wait *w, const struct pull_progress *now)
{
	_buf_ struct buf b = BUF_INIT(4096);

	pull_progress_json(now, &b);
	if (!b.err && !ws_congested(((struct session_ws *)w->arg)->ws))
		send_with_type(w->arg, "progress", NULL, buf_str(&b), b.len);
}

/* The message that waited for its image, which belongs to the caller now. */
static json_t *take_asked(struct session_ws *s)
{
	json_t *m = s->asked;

	s->asked = NULL;
	pull_leave(&s->wait);
	return m;
}

static void on_pulled(struct pull_wait *w, const struct refusal *why)
{
	struct session_ws *s = w->arg;
	json_auto_t *m = take_asked(s);
	struct refusal late = { 0 };

	if (!why)
		begin(s, m, &late);
	if (why || late.kind)
		send_refusal(s, why ? why : &late);
}

static void interrupt(struct session_ws *s)
{
	struct refusal why;

	if (s->running)
		execution_interrupt(s->running);
	if (!s->asked)
		return;
	json_decref(take_asked(s));
	(void)refusal_set(&why, REFUSAL_CANCELLED, "cancelled", NULL, NULL,
			  "it was interrupted before it ran");
	send_refusal(s, &why);
}

static void execute(struct session_ws *s, json_t *m)
{
	const char *image = json_string_value(json_object_get(m, "image"));
	struct schema_error bad;
	struct refusal why = { 0 };

	if (s->reader.log || s->asked) {
		send_error(s, "busy", "an execution runs on this socket already", NULL);
		return;
	}
	(void)json_object_del(m, "type");
	if (!schema_check(m, operation_execute.fields, IN_BODY, &bad)) {
		send_error(s, bad.code, bad.message, bad.field);
		return;
	}
	s->wait = (struct pull_wait){ .progress = on_pull_progress, .done = on_pulled, .arg = s };
	int r = pulls_wait(s->services->pulls, s->owner, image, &s->wait, &why);

	if (r == 0)
		s->asked = json_incref(m);
	else if (r > 0)
		begin(s, m, &why);
	if (why.kind)
		send_refusal(s, &why);
}

static void on_message(struct ws *w, bool text, const char *data, size_t len)
{
	struct session_ws *s = ws_user(w);
	struct schema_error bad = { 0 };
	json_t *m = text ? schema_load(data, len, &bad) : NULL;
	const char *type = json_string_value(json_object_get(m, "type"));

	if (!m)
		send_error(s, text ? bad.code : "not_text",
			   text ? bad.message : "messages are JSON text", NULL);
	else if (!type)
		send_error(s, "missing_field", "a message has a type", "type");
	else if (strcmp(type, "execute") == 0)
		execute(s, m);
	else if (strcmp(type, "interrupt") == 0)
		interrupt(s);
	else if (strcmp(type, "input_response") == 0 && s->running)
		execution_answer(s->running, json_integer_value(json_object_get(m, "id")),
				 json_string_value(json_object_get(m, "value")),
				 json_string_value(json_object_get(m, "error")));
	else if (strcmp(type, "input_response") != 0)
		send_error(s, "unknown_type", "types are execute, input_response, interrupt",
			   "type");
	json_decref(m);
}

static void on_drain(struct ws *w)
{
	struct session_ws *s = ws_user(w);

	ws_pause(w, false);
	pump(s);
}

static void on_close(struct ws *w, int code)
{
	struct session_ws *s = ws_user(w);

	(void)code;
	json_decref(take_asked(s));
	leave(s);
	free(s);
}

static const struct ws_ops ops = { .on_message = on_message,
				   .on_drain = on_drain,
				   .on_close = on_close };

void handle_execute_ws(struct services *services, struct http_exchange *x)
{
	struct session_ws *s;

	if (!reply_is_ws(x, "connect with a WebSocket client"))
		return;
	s = calloc(1, sizeof(*s));
	if (!s) {
		reply_no_memory(x);
		return;
	}
	s->services = services;
	memcpy(s->owner, context_of(x)->owner, sizeof(s->owner));
	s->ws = http_upgrade_ws(x, &ops, s, (size_t)services->daemon->config.max_body);
	if (!s->ws)
		free(s);
}
