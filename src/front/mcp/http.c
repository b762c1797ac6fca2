/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http.c - Streamable HTTP: the checks and refusals of all requests of /mcp, and its GET and
 * DELETE.
 *
 * GET is the stream of a session's messages that belong to no request, DELETE its end. post.c has
 * POST.
 */
#include "front/mcp/http.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "front/api/handlers.h"
#include "front/http/reply.h"
#include "front/http/serve.h"
#include "front/mcp/call.h"
#include "front/mcp/channel.h"
#include "front/mcp/mcp.h"
#include "front/mcp/post.h"
#include "front/mcp/session.h"
#include "net/http.h"

#define ERROR_MAX 8192u

/* ---- heads and refusals -------------------------------------------------------------------- */

void mcp_refuse(struct http_exchange *x, int status, const json_t *id, int code, const json_t *data,
		const char *message)
{
	_buf_ struct buf b = BUF_INIT(ERROR_MAX);

	mcp_error_json(&b, id, code, data, message);
	reply_json(x, status, &b);
}

bool mcp_accepts(const struct http_exchange *x, const char *type)
{
	const char *accept = http_header(x, "accept");

	return !accept || strcasestr(accept, type) || strstr(accept, "*/*");
}

bool mcp_head_ok(struct http_exchange *x)
{
	const char *type = http_header(x, "content-type");

	if (type && strncasecmp(type, "application/json", 16) != 0)
		mcp_refuse(x, 415, NULL, MCP_BAD_SESSION, NULL,
			   "Content-Type must be application/json");
	else if (!mcp_accepts(x, "application/json"))
		mcp_refuse(x, 406, NULL, MCP_BAD_SESSION, NULL,
			   "Accept must name application/json and " MCP_EVENTS);
	else
		return true;
	return false;
}

bool mcp_stream_wanted(struct http_exchange *x)
{
	if (!mcp_accepts(x, MCP_EVENTS)) {
		mcp_refuse(x, 406, NULL, MCP_BAD_SESSION, NULL, "Accept must name " MCP_EVENTS);
		return false;
	}
	if (strcmp(http_request(x)->method, "HEAD") != 0)
		return true;
	reply_headers(x);
	http_reply(x, 200, MCP_EVENTS, "", 0);
	return false;
}

void mcp_stream_open(struct http_exchange *x)
{
	reply_headers(x);
	http_add_header(x, "X-Accel-Buffering", "no");
	sse_begin(x);
}

/* ---- sessions ------------------------------------------------------------------------------ */

struct mcp_session *mcp_http_session(struct mcp *mcp, struct http_exchange *x, const json_t *id)
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
		return mcp_http_session(mcp, x, NULL);
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
