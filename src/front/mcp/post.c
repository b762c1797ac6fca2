/* SPDX-License-Identifier: Apache-2.0 */
/*
 * post.c - POST of /mcp, for both eras: from the message to its answer.
 *
 * mcp/message.h decides the era.
 * A request is answered with one JSON object, unless something is said before its end: then the
 * answer becomes a stream of events, of which the response is the last. Both a modern client that
 * goes away and a legacy one that says so cancel what they asked for; a legacy one that merely goes
 * away does not, and may come back for what it missed (replay.h).
 */
#include "front/mcp/post.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "front/api/handlers.h"
#include "front/http/reply.h"
#include "front/http/serve.h"
#include "front/mcp/batch.h"
#include "front/mcp/call.h"
#include "front/mcp/http.h"
#include "front/mcp/mcp.h"
#include "front/mcp/replay.h"
#include "front/mcp/session.h"
#include "front/mcp/sse.h"
#include "front/support/schema.h"
#include "net/http.h"

#define ALIVE_NS (15 * CLOCK_NS_PER_S)
#define RETRY_MS 1000

/* ---- the answer ---------------------------------------------------------------------------- */

struct post {
	struct mcp *mcp;
	struct http_exchange *x;   /* NULL: the client is gone */
	struct mcp_call *call;     /* NULL: a batch of them */
	struct mcp_replay *replay; /* of a stream that can be resumed, or NULL */
	struct timer alive;
	bool streaming, takes_events;
};

static void on_alive(struct timer *t);

static void on_drain(struct http_exchange *x)
{
	struct post *p = context_of(x)->work;

	if (p && p->call && p->call->drained)
		p->call->drained(p->call);
}

static void open_stream(struct http_exchange *x)
{
	mcp_stream_open(x);
	http_stream_on_drain(x, on_drain);
}

/* An empty event, so that there is something to come back to. */
static void prime(struct post *p)
{
	char id[MCP_EVENT_ID], text[128];
	int len;

	mcp_replay_id(p->replay, id);
	len = snprintf(text, sizeof(text), "id: %s\nretry: %d\ndata: \n\n", id, RETRY_MS);
	(void)http_stream_write(p->x, text, (size_t)len);
}

static void begin_stream(struct post *p)
{
	if (p->streaming)
		return;
	p->streaming = true;
	open_stream(p->x);
	if (p->call && p->takes_events)
		p->replay = mcp_replay_begin(p->call->session, p);
	if (p->replay)
		prime(p);
}

static void arm(struct post *p)
{
	struct loop *l = p->mcp->loop;

	p->alive.fn = on_alive;
	p->alive.arg = p;
	timer_after(l, &p->alive, ALIVE_NS);
}

/* An answer that takes long becomes a stream, which keeps the connection alive. */
static void on_alive(struct timer *t)
{
	struct post *p = t->arg;

	begin_stream(p);
	(void)sse_comment(p->x, "");
}

/* An event of a stream that has begun, though there may be nobody who reads it now. */
static void put_event(struct post *p, const struct buf *json)
{
	char id[MCP_EVENT_ID];

	if (p->replay) {
		mcp_replay_add(p->replay, json);
		mcp_replay_id(p->replay, id);
	}
	if (p->x)
		(void)sse_event(p->x, p->replay ? id : NULL, "message", buf_str(json), json->len);
}

static void say(struct post *p, const struct buf *json)
{
	if (!p->takes_events || (!p->x && !p->replay))
		return;
	if (p->x)
		begin_stream(p);
	put_event(p, json);
}

/* The last of it. @json NULL: all was cancelled. @session: to be named, or NULL. */
static void finish(struct post *p, int status, const struct buf *json, const char *session)
{
	struct http_exchange *x = context_done(p->x);

	timer_cancel(&p->alive);
	if (x && !json && !p->streaming) {
		p->streaming = true; /* an empty one: nothing to come back to */
		open_stream(x);
	}
	if (p->streaming) {
		if (json)
			put_event(p, json);
		if (p->replay)
			mcp_replay_end(p->replay);
		if (x)
			http_stream_end(x);
	} else if (x) {
		if (session)
			http_add_header(x, "Mcp-Session-Id", session);
		reply_json(x, status, json);
	}
	free(p);
}

static bool is_congested(const struct post *p)
{
	return p->x && p->streaming && http_stream_congested(p->x);
}

static void post_send(struct mcp_call *c, const struct buf *json)
{
	say(c->at, json);
}

static void post_finish(struct mcp_call *c, int status, const struct buf *json)
{
	bool begins = c->session && strcmp(c->m.method, "initialize") == 0 && c->session->version;

	finish(c->at, status, json, begins ? c->session->id : NULL);
}

static bool post_congested(const struct mcp_call *c)
{
	return is_congested(c->at);
}

static const char *post_header(const struct mcp_call *c, const char *lower_name)
{
	const struct post *p = c->at;

	return p->x ? http_header(p->x, lower_name) : NULL;
}

/* The connection is nobody's any more. */
static void detach(struct post *p)
{
	timer_cancel(&p->alive);
	http_stream_end(context_done(p->x));
	p->x = NULL;
}

static void post_hang_up(struct mcp_call *c)
{
	struct post *p = c->at;

	if (!p->x || !p->takes_events)
		return;
	begin_stream(p);
	if (p->replay)
		detach(p);
}

static const struct mcp_line post_line = { .send = post_send,
					   .finish = post_finish,
					   .congested = post_congested,
					   .header = post_header,
					   .hang_up = post_hang_up };

static void on_gone(struct request_context *v)
{
	struct post *p = v->work;

	timer_cancel(&p->alive);
	p->x = NULL;
	if (p->call && p->call->era == MCP_MODERN)
		mcp_call_cancel(p->call);
}

/* ---- one request --------------------------------------------------------------------------- */

static struct post *begin_post(struct mcp *mcp, struct http_exchange *x)
{
	struct post *p = calloc(1, sizeof(*p));

	if (!p) {
		mcp_refuse(x, 503, NULL, MCP_INTERNAL, NULL, "the daemon is out of memory");
		return NULL;
	}
	*p = (struct post){ .mcp = mcp, .x = x, .takes_events = mcp_accepts(x, MCP_EVENTS) };
	context_wait(x, p, on_gone);
	if (p->takes_events)
		arm(p);
	return p;
}

static void no_memory(struct post *p)
{
	_buf_ struct buf b = BUF_INIT(256);

	mcp_error_json(&b, NULL, MCP_INTERNAL, NULL, "the daemon is out of memory");
	finish(p, 503, &b, NULL);
}

static void run(struct mcp *mcp, struct http_exchange *x, struct mcp_session *session,
		enum mcp_era era, json_t *message, const struct mcp_message *m)
{
	struct post *p = begin_post(mcp, x);

	if (!p)
		return;
	p->call = mcp_call_new(mcp, context_of(x)->owner, session, era, message, m, &post_line, p);
	if (p->call)
		mcp_call_run(p->call);
	else
		no_memory(p);
}

/* ---- a client that comes back -------------------------------------------------------------- */

void mcp_post_resume(struct mcp_session *session, struct http_exchange *x, const char *last)
{
	size_t seen = 0;
	struct mcp_replay *r = mcp_replay_find(session, last, &seen);
	struct post *p;

	if (!r) {
		mcp_refuse(x, 400, NULL, MCP_BAD_SESSION, NULL,
			   "Last-Event-ID: the events after it are not kept, or no longer");
		return;
	}
	p = mcp_replay_speaker(r);
	open_stream(x);
	mcp_replay_send(r, x, seen);
	if (!p) {
		http_stream_end(x);
		return;
	}
	if (p->x)
		detach(p); /* it has not been seen yet that this one is dead */
	p->x = x;
	context_wait(x, p, on_gone);
	arm(p);
}

/* ---- several in one ------------------------------------------------------------------------ */

static void batch_send(void *at, const struct buf *json)
{
	say(at, json);
}

static bool batch_congested(const void *at)
{
	return is_congested(at);
}

static void batch_done(void *at, const struct buf *json)
{
	finish(at, 200, json, NULL);
}

static const struct mcp_batch_ops batch_ops = { batch_send, batch_congested, batch_done };

/* Of responses and notifications nothing comes. */
static void batch_quiet(void *at, const struct buf *json)
{
	(void)at;
	(void)json;
}

static const struct mcp_batch_ops quiet_ops = { batch_quiet, batch_congested, batch_quiet };

static void run_batch(struct mcp *mcp, struct http_exchange *x, struct mcp_session *session,
		      json_t *list)
{
	struct post *p;

	if (!mcp_batch_asks(list)) {
		(void)mcp_batch_run(session, list, MCP_ANSWER_MAX, &quiet_ops, NULL);
		reply_empty(x, 202);
		return;
	}
	p = begin_post(mcp, x);
	if (p && !mcp_batch_run(session, list, MCP_ANSWER_MAX, &batch_ops, p))
		no_memory(p);
}

/* ---- the message --------------------------------------------------------------------------- */

static void serve_batch(struct mcp *mcp, struct http_exchange *x, json_t *list)
{
	bool named = http_header(x, "mcp-session-id") != NULL;
	struct mcp_session *s = named ? mcp_http_session(mcp, x, NULL) : NULL;
	const char *why;

	if (named && !s)
		return;
	why = mcp_batch_why_not(s, list);
	if (why) {
		mcp_refuse(x, 400, NULL, MCP_INVALID_REQUEST, NULL, why);
		return;
	}
	run_batch(mcp, x, s, list);
}

static void serve_legacy(struct mcp *mcp, struct http_exchange *x, json_t *message,
			 const struct mcp_message *m)
{
	bool begins = m->kind == MCP_REQUEST && strcmp(m->method, "initialize") == 0;
	struct mcp_session *s = begins ? mcp_session_new(mcp, context_of(x)->owner) :
					 mcp_http_session(mcp, x, m->id);

	if (!s) {
		if (begins)
			mcp_refuse(x, 503, m->id, MCP_INTERNAL, NULL, MCP_SESSIONS_FULL);
		return;
	}
	if (m->kind == MCP_REQUEST) {
		run(mcp, x, s, MCP_LEGACY, message, m);
		if (begins && !s->version)
			mcp_session_end(s); /* the handshake failed */
		return;
	}
	if (m->kind == MCP_NOTIFICATION)
		mcp_notified(mcp, s, NULL, m);
	else
		(void)mcp_session_response(s, m->id, m->result, m->error);
	reply_empty(x, 202);
}

static void serve_message(struct mcp *mcp, struct http_exchange *x, json_t *message)
{
	const struct mcp_headers h = { http_header(x, "mcp-protocol-version"),
				       http_header(x, "mcp-method"), http_header(x, "mcp-name") };
	struct mcp_message m;
	struct mcp_ruling r;

	mcp_message_read(message, &m);
	if (m.kind == MCP_NONSENSE) {
		mcp_refuse(x, 400, m.id, MCP_INVALID_REQUEST, NULL, m.why);
		return;
	}
	mcp_rule(&m, &h, &r);
	if (r.http)
		mcp_refuse(x, r.http, m.id, r.code, r.data, r.message);
	else if (r.era == MCP_LEGACY)
		serve_legacy(mcp, x, message, &m);
	else if (m.kind == MCP_REQUEST && strcmp(m.method, "subscriptions/listen") == 0 &&
		 !mcp_accepts(x, MCP_EVENTS))
		mcp_refuse(x, 406, m.id, MCP_INVALID_REQUEST, NULL, "Accept must name " MCP_EVENTS);
	else if (m.kind == MCP_REQUEST)
		run(mcp, x, NULL, MCP_MODERN, message, &m);
	else
		reply_empty(x, 202);
	json_decref(r.data);
}

void handle_mcp_post(struct mcp *mcp, struct http_exchange *x)
{
	const struct http_request *q = http_request(x);
	struct schema_error e;
	json_t *message;

	if (!mcp_head_ok(x))
		return;
	if (mcp_sse_named(x)) {
		mcp_sse_post(mcp, x);
		return;
	}
	message = schema_load(q->body ? q->body : "", q->body_len, &e);
	if (!message) {
		mcp_refuse(x, 400, NULL, MCP_PARSE_ERROR, NULL, e.message);
		return;
	}
	if (json_is_array(message))
		serve_batch(mcp, x, message);
	else
		serve_message(mcp, x, message);
	json_decref(message);
}
