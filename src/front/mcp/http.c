/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http.c - Streamable HTTP: POST, GET and DELETE of /mcp, for both eras.
 *
 * mcp/message.h decides the era of a POST, and post.c answers it. GET is the stream of a session's
 * messages that belong to no request, DELETE its end.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "front/api/handlers.h"
#include "front/http/reply.h"
#include "front/http/serve.h"
#include "front/mcp/batch.h"
#include "front/mcp/call.h"
#include "front/mcp/channel.h"
#include "front/mcp/mcp.h"
#include "front/mcp/post.h"
#include "front/mcp/session.h"
#include "front/mcp/sse.h"
#include "front/support/schema.h"
#include "net/http.h"

/* ---- sessions ------------------------------------------------------------------------------ */

/* The session that the request names; NULL: answered. */
static struct mcp_session *own_session(struct mcp *mcp, struct http_exchange *x, const json_t *id)
{
	const char *name = http_header(x, "mcp-session-id");
	struct mcp_session *s = name ? mcp_session_find(mcp, context_of(x)->owner, name) : NULL;

	if (s && mcp_channel_of(s))
		s = NULL; /* it has a wire of its own */
	if (s)
		mcp_session_touch(s);
	else if (!name)
		mcp_refuse(x, 400, id, MCP_BAD_SESSION, NULL,
			   "header Mcp-Session-Id is missing: begin with initialize");
	else
		mcp_refuse(x, 404, id, MCP_NO_SESSION, NULL,
			   "there is no such session: begin again with initialize");
	return s;
}

/* ---- POST ---------------------------------------------------------------------------------- */

static void serve_batch(struct mcp *mcp, struct http_exchange *x, json_t *list)
{
	bool named = http_header(x, "mcp-session-id") != NULL;
	struct mcp_session *s = named ? own_session(mcp, x, NULL) : NULL;
	const char *why;

	if (named && !s)
		return;
	why = mcp_batch_why_not(s, list);
	if (why) {
		mcp_refuse(x, 400, NULL, MCP_INVALID_REQUEST, NULL, why);
		return;
	}
	mcp_post_batch(mcp, x, s, list);
}

static void serve_legacy(struct mcp *mcp, struct http_exchange *x, json_t *message,
			 const struct mcp_message *m)
{
	bool begins = m->kind == MCP_REQUEST && strcmp(m->method, "initialize") == 0;
	struct mcp_session *s = begins ? mcp_session_new(mcp, context_of(x)->owner) :
					 own_session(mcp, x, m->id);

	if (!s) {
		if (begins)
			mcp_refuse(x, 503, m->id, MCP_INTERNAL, NULL,
				   "there are too many sessions: end some");
		return;
	}
	if (m->kind == MCP_REQUEST) {
		mcp_post_run(mcp, x, s, MCP_LEGACY, message);
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
		mcp_post_run(mcp, x, NULL, MCP_MODERN, message);
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

/* ---- GET: messages that belong to no request ----------------------------------------------- */

struct listener_out {
	struct http_exchange *x;
	struct mcp_session *session;
};

static void out_send(struct mcp_session *s, const struct buf *json)
{
	struct listener_out *o = s->at;

	(void)sse_event(o->x, NULL, "message", buf_str(json), json->len);
}

static void out_drop(struct listener_out *o)
{
	mcp_session_touch(o->session);
	o->session->outlet = NULL;
	o->session->at = NULL;
	free(o);
}

static void out_ended(struct mcp_session *s)
{
	struct listener_out *o = s->at;
	struct http_exchange *x = o->x;
	struct request_context *v = context_of(x);

	v->gone = NULL;
	out_drop(o);
	http_stream_end(x);
}

static const struct mcp_outlet stream_outlet = { out_send, out_ended };

static void out_gone(struct request_context *v)
{
	out_drop(v->work);
}

/* GET and DELETE are for a session alone. NULL: answered. */
static struct mcp_session *named_session(struct mcp *mcp, struct http_exchange *x)
{
	if (http_header(x, "mcp-session-id"))
		return own_session(mcp, x, NULL);
	http_add_header(x, "Allow", "POST");
	mcp_refuse(x, 405, NULL, MCP_BAD_SESSION, NULL,
		   "there is no stream without a session: header Mcp-Session-Id, from initialize");
	return NULL;
}

void handle_mcp_get(struct mcp *mcp, struct http_exchange *x)
{
	struct mcp_session *s = named_session(mcp, x);
	struct listener_out *o;

	if (!s || !mcp_stream_wanted(x))
		return;
	if (http_header(x, "last-event-id")) {
		mcp_post_resume(s, x, http_header(x, "last-event-id"));
		return;
	}
	if (s->outlet) {
		mcp_refuse(x, 409, NULL, MCP_BAD_SESSION, NULL,
			   "this session has a stream already");
		return;
	}
	if (!(o = calloc(1, sizeof(*o)))) {
		mcp_refuse(x, 503, NULL, MCP_INTERNAL, NULL, "the daemon is out of memory");
		return;
	}
	*o = (struct listener_out){ .x = x, .session = s };
	s->outlet = &stream_outlet;
	s->at = o;
	context_wait(x, o, out_gone);
	mcp_stream_open(x);
	(void)sse_comment(x, "");
}

/* ---- DELETE -------------------------------------------------------------------------------- */

void handle_mcp_delete(struct mcp *mcp, struct http_exchange *x)
{
	struct mcp_session *s = named_session(mcp, x);

	if (!s)
		return;
	mcp_session_end(s);
	reply_empty(x, 204);
}
