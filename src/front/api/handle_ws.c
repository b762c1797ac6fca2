/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handle_ws.c - GET /execute/ws: executions over a WebSocket, with somebody who can answer.
 *
 * In:  {"type":"execute", ...fields of POST /execute},
 * {"type":"input_response","id":1,"value":"..."},
 *      {"type":"interrupt"}.
 * Out: {"type":"stdout","data":"..."} and the other events of a stream, each with its type, and at
 * the end {"type":"done","result":{...}} or {"type":"refused","error":{...}}. One execution at a
 * time per socket; a second one meanwhile is refused. Closing it interrupts.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "front/api/execute_request.h"
#include "front/api/handlers.h"
#include "front/http/reply.h"
#include "front/http/serve.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/sandbox.h"
#include "front/support/front.h"
#include "front/support/metrics.h"
#include "front/support/refusal.h"
#include "front/support/schema.h"
#include "net/http.h"
#include "net/ws.h"

#define OUT_MAX (128u << 20)

struct session_ws {
	struct front *f;
	struct ws *ws;
	const struct field *fields; /* of POST /execute */
	struct execution *running;
	char owner[OWNER_MAX];
};

/* ---- out ----------------------------------------------------------------------------------- */

static void send_with_type(struct session_ws *s, const char *type, const char *key,
			   const struct buf *json)
{
	_buf_ struct buf b = BUF_INIT(OUT_MAX);

	/* An object gets its type as first member; what is not one goes under a key. */
	if (json->err || json->len < 2) /* it could not be written */
		b.err = json->err ? json->err : -ENOMEM;
	else if (key)
		(void)buf_printf(&b, "{\"type\":\"%s\",\"%s\":", type, key);
	else
		(void)buf_printf(&b, "{\"type\":\"%s\"%s", type, json->len > 2 ? "," : "");
	if (!b.err)
		(void)buf_append(&b, buf_str(json) + (key ? 0 : 1), json->len - (key ? 0 : 1));
	if (key)
		(void)buf_puts(&b, "}");
	(void)ws_send_buf(s->ws, true, &b);
}

static void send_error(struct session_ws *s, const char *code, const char *message,
		       const char *field)
{
	_buf_ struct buf b = BUF_INIT(4096);

	error_json(&b, code, message, field && *field ? field : NULL, NULL);
	send_with_type(s, "refused", NULL, &b);
}

static void on_event(struct execution *e, const char *type, const struct buf *json)
{
	struct session_ws *s = e->user;
	bool bundle = strcmp(type, "result") == 0;

	if (strcmp(type, "input_request") == 0)
		(void)ws_send_buf(s->ws, true, json);
	else
		send_with_type(s, type, bundle ? "data" : NULL, json);
}

static bool congested(struct execution *e)
{
	const struct session_ws *s = e->user;

	return ws_congested(s->ws);
}

static void on_done(struct execution *e)
{
	_buf_ struct buf b = BUF_INIT(OUT_MAX);
	struct session_ws *s = e->user;
	struct json j;

	s->running = NULL;
	if (e->refusal.status) {
		metric_error(e->refusal.code);
		refusal_json(&e->refusal, &b);
		send_with_type(s, "refused", NULL, &b);
		return;
	}
	json_init(&j, &b);
	execution_json(e, &j);
	if (json_finish(&j) == 0)
		send_with_type(s, "done", "result", &b);
	else if (b.err == -ENOMEM)
		send_error(s, "out_of_memory", "the daemon is out of memory", NULL);
	else
		send_error(s, "result_too_large", "the result could not be written", NULL);
	/* Who does not read what came of this asks for nothing more. */
	if (ws_congested(s->ws))
		ws_pause(s->ws, true);
}

static const struct sink ws_sink = {
	.event = on_event, .can_answer = true, .congested = congested, .done = on_done
};

/* ---- in ------------------------------------------------------------------------------------ */

static void execute(struct session_ws *s, json_t *m)
{
	struct schema_error bad;
	struct refusal r = { 0 };
	char name[SANDBOX_NAME_MAX + 1] = "", image[IMAGE_OPENER_REF_MAX] = "";

	if (s->running) {
		send_error(s, "busy", "an execution runs on this socket already", NULL);
		return;
	}
	(void)json_object_del(m, "type");
	if (!schema_check(m, s->fields, &bad)) {
		send_error(s, bad.code, bad.message, bad.field);
		return;
	}
	if (ask_session(m))
		(void)snprintf(name, sizeof(name), "%s", ask_session(m));
	int has_image = sandbox_spec_image(s->f, m, image, &r);
	struct execution *e = has_image < 0 ? NULL :
					      ask_execution(s->f, s->owner, m, &ws_sink, s, &r);

	if (!e) {
		send_error(s, r.code, r.message, r.field);
		return;
	}
	s->running = e;
	sandbox_submit(s->f, s->owner, name[0] ? name : NULL, has_image ? image : NULL, e);
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
	else if (strcmp(type, "interrupt") == 0 && s->running)
		execution_interrupt(s->running);
	else if (strcmp(type, "input_response") == 0 && s->running)
		execution_answer(s->running, json_integer_value(json_object_get(m, "id")),
				 json_string_value(json_object_get(m, "value")),
				 json_string_value(json_object_get(m, "error")));
	else if (strcmp(type, "interrupt") != 0 && strcmp(type, "input_response") != 0)
		send_error(s, "unknown_type", "types are execute, input_response, interrupt",
			   "type");
	json_decref(m);
}

static void on_drain(struct ws *w)
{
	struct session_ws *s = ws_user(w);

	ws_pause(w, false);
	if (s->running)
		execution_resume(s->running);
}

static void on_close(struct ws *w, int code)
{
	struct session_ws *s = ws_user(w);

	(void)code;
	if (s->running)
		execution_cancel(s->running);
	free(s);
}

static const struct ws_ops ops = { .on_message = on_message,
				   .on_drain = on_drain,
				   .on_close = on_close };

static const struct field *execute_fields(void)
{
	const struct route *r;

	for (size_t i = 0; (r = route_at(i)); i++)
		if (r->handler == handle_execute)
			return r->body;
	abort();
}

void handle_execute_ws(struct front *f, struct http_exchange *x, const struct route_params *p)
{
	struct session_ws *s;

	(void)p;
	if (!http_is_ws(x)) {
		http_add_header(x, "Upgrade", "websocket");
		reply_error(x, 426, "upgrade_required", NULL, "connect with a WebSocket client",
			    "this is no WebSocket handshake");
		return;
	}
	s = calloc(1, sizeof(*s));
	if (!s) {
		reply_retry(x, 503, 1, "out_of_memory", NULL, "the daemon is out of memory");
		return;
	}
	s->f = f;
	s->fields = execute_fields();
	memcpy(s->owner, context_of(x)->owner, sizeof(s->owner));
	s->ws = http_upgrade_ws(x, &ops, s, (size_t)f->config.max_body);
	if (!s->ws)
		free(s);
}
