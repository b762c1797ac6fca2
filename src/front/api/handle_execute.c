/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handle_execute.c - POST /execute: one answer at the end, or Server-Sent Events on the way.
 *
 * The exchange and the execution know each other until one of them is over: a client that goes
 * away cancels the execution, a finished execution answers the exchange.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "front/api/execute_request.h"
#include "front/api/find_sandbox.h"
#include "front/api/handlers.h"
#include "front/http/idempotency.h"
#include "front/http/reply.h"
#include "front/http/request.h"
#include "front/http/serve.h"
#include "front/output/stream_log.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/record.h"
#include "front/sandbox/sandbox.h"
#include "front/support/front.h"
#include "front/support/metrics.h"
#include "front/support/refusal.h"
#include "net/http.h"

#define ANSWER_MAX (128u << 20)

static void write_result(const struct execution *e, struct buf *b)
{
	struct json j;

	json_init(&j, b);
	execution_json(e, &j);
	(void)json_finish(&j); /* b->err */
}

static void let_go(struct execution *e)
{
	struct request_context *v = context_of(e->user);

	v->work = NULL;
	v->gone = NULL;
}

/* ---- one answer ---------------------------------------------------------------------------- */

static void answer(struct execution *e)
{
	_buf_ struct buf b = BUF_INIT(ANSWER_MAX);
	struct http_exchange *x = e->user;

	let_go(e);
	if (e->refusal.status) {
		reply_refusal(x, &e->refusal);
		return;
	}
	write_result(e, &b);
	reply_json(x, 200, &b);
}

static const struct sink answer_sink = { .done = answer };

/* ---- events -------------------------------------------------------------------------------- */

/* In a session events are kept, and have numbers: who is cut off asks for the rest by the last one.
 */
static const char *id_of(const struct execution *e, uint64_t after, char id[static 24])
{
	if (!e->record || !e->record->log)
		return NULL;
	(void)snprintf(id, 24, "%" PRIu64, stream_log_last(e->record->log) + after);
	return id;
}

static void stream_event(struct execution *e, const char *type, const struct buf *json)
{
	char id[24];

	(void)sse_event(e->user, id_of(e, 0, id), type, buf_str(json), json->len);
}

static bool stream_congested(struct execution *e)
{
	return http_stream_congested(e->user);
}

static void stream_drained(struct http_exchange *x)
{
	struct request_context *v = context_of(x);

	if (v && v->work)
		execution_resume(v->work);
}

/* The last event is the result object, or the error that stands for it. */
static void stream_done(struct execution *e)
{
	_buf_ struct buf b = BUF_INIT(ANSWER_MAX);
	struct http_exchange *x = e->user;
	char id[24];

	let_go(e);
	if (e->refusal.status) {
		metric_error(e->refusal.code);
		refusal_json(&e->refusal, &b);
	} else {
		write_result(e, &b);
	}
	/* The record's own last event, which is of the same kind, comes after this. */
	if (b.err)
		(void)http_stream_lost(x, b.err);
	else
		(void)sse_event(x, id_of(e, 1, id), e->refusal.status ? "refused" : "done",
				buf_str(&b), b.len);
	http_stream_end(x);
}

static const struct sink stream_sink = { .event = stream_event,
					 .congested = stream_congested,
					 .done = stream_done };

/* ---- the route ----------------------------------------------------------------------------- */

/* Nobody waits, but somebody may ask again. */
static void keep_answer(struct execution *e)
{
	_buf_ struct buf b = BUF_INIT(ANSWER_MAX);

	if (!e->refusal.status)
		write_result(e, &b);
	if (e->refusal.status || b.err)
		idempotency_drop(e->user);
	else
		idempotency_answer(e->user, 200, buf_str(&b), b.len);
}

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

static bool wants_stream(const struct http_exchange *x, const json_t *body)
{
	const char *accept = http_header(x, "accept");

	return json_is_true(json_object_get(body, "stream")) ||
	       (accept && strstr(accept, "text/event-stream"));
}

void handle_execute(struct front *f, struct http_exchange *x, const struct route_params *p)
{
	struct request_context *v = context_of(x);
	json_t *body = request_json(x, v->route);
	struct refusal r = { 0 };
	char session[SANDBOX_NAME_MAX + 1] = "", image[IMAGE_OPENER_REF_MAX] = "";

	(void)p;
	if (!body)
		return;
	bool stream = wants_stream(x, body);

	if (!idempotency_begin_once(f, x, stream)) {
		json_decref(body);
		return;
	}
	int has_image = sandbox_spec_image(f, body, image, &r);
	struct execution *e = has_image < 0 ?
				      NULL :
				      ask_execution(f, v->owner, body,
						    stream ? &stream_sink : &answer_sink, x, &r);

	if (ask_session(body))
		(void)snprintf(session, sizeof(session), "%s", ask_session(body));
	json_decref(body);
	if (!e) {
		reply_refusal(x, &r);
		return;
	}
	v->work = e;
	v->gone = on_gone;
	http_add_header(x, "X-Execution-Id", e->id);
	if (stream) {
		reply_headers(x);
		http_stream(x, 200, "text/event-stream; charset=utf-8");
		http_stream_on_drain(x, stream_drained);
	}
	sandbox_submit(f, v->owner, session[0] ? session : NULL, has_image ? image : NULL, e);
}
