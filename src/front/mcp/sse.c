/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sse.c - The protocol's first HTTP transport: answers on a stream of events, questions by POST.
 *
 * GET /mcp/sse opens the stream. Its first event says where to post, /mcp?sessionId=...; every
 * message that is posted there is answered with 202 at once, and with its response on the stream.
 * The session is the stream: when that ends, it does. A client that leaves too much unread is
 * dropped.
 */
#include "front/mcp/sse.h"

#include <stdlib.h>

#include "base/buf.h"
#include "front/api/handlers.h"
#include "front/http/reply.h"
#include "front/http/serve.h"
#include "front/mcp/channel.h"
#include "front/mcp/http.h"
#include "front/mcp/session.h"
#include "front/support/schema.h"
#include "mcp/message.h"
#include "net/conn.h"
#include "net/http.h"

#define NAME_MAX_BYTES 64u

struct mcp_stream {
	struct mcp_channel channel;
	struct http_exchange *x;
};

/* ---- the stream ---------------------------------------------------------------------------- */

static void stream_write(struct mcp_channel *p, const struct buf *json)
{
	struct mcp_stream *s = (struct mcp_stream *)p;

	if (conn_queued(http_conn(s->x)) + json->len > MCP_CHANNEL_QUEUE_MAX)
		mcp_channel_doom(p);
	else
		(void)sse_event(s->x, NULL, "message", buf_str(json), json->len);
}

static bool stream_congested(const struct mcp_channel *p)
{
	const struct mcp_stream *s = (const struct mcp_stream *)p;

	return http_stream_congested(s->x);
}

static void release(struct mcp_stream *s)
{
	mcp_channel_end(&s->channel);
	free(s);
}

static void stream_close(struct mcp_channel *p, bool lost)
{
	struct mcp_stream *s = (struct mcp_stream *)p;
	struct http_exchange *x = context_done(s->x);

	release(s);
	if (lost)
		http_stream_abort(x);
	else
		http_stream_end(x);
}

static const struct mcp_channel_ops ops = { stream_write, stream_congested, stream_close };

static void on_gone(struct request_context *v)
{
	release(v->work);
}

static void on_drain(struct http_exchange *x)
{
	struct mcp_stream *s = context_of(x)->work;

	if (s)
		mcp_channel_drained(&s->channel);
}

/* ---- GET ----------------------------------------------------------------------------------- */

static void begin(struct mcp_stream *s)
{
	_buf_ struct buf b = BUF_INIT(128);

	context_wait(s->x, s, on_gone);
	mcp_stream_open(s->x);
	http_stream_on_drain(s->x, on_drain);
	(void)buf_printf(&b, "/mcp?sessionId=%s", s->channel.session->id);
	(void)sse_event(s->x, NULL, "endpoint", buf_str(&b), b.len);
}

void handle_mcp_sse(struct mcp *mcp, struct http_exchange *x)
{
	struct mcp_stream *s;

	if (!mcp_stream_wanted(x))
		return;
	s = calloc(1, sizeof(*s));
	if (s)
		mcp_channel_init(&s->channel, mcp, context_of(x)->owner, &ops);
	if (!s || !mcp_channel_shake(&s->channel)) {
		free(s);
		mcp_refuse(x, 503, NULL, MCP_INTERNAL, NULL, MCP_SESSIONS_FULL);
		return;
	}
	s->x = x;
	begin(s);
}

/* ---- POST ---------------------------------------------------------------------------------- */

static bool name_of(const struct http_exchange *x, struct buf *name)
{
	return http_query(x, "sessionId", name) || http_query(x, "session_id", name);
}

bool mcp_sse_named(const struct http_exchange *x)
{
	_buf_ struct buf name = BUF_INIT(NAME_MAX_BYTES);

	return name_of(x, &name);
}

/* The message that was posted; NULL: answered. */
static json_t *message_of(struct http_exchange *x)
{
	const struct http_request *q = http_request(x);
	struct schema_error e;
	struct mcp_message m;
	json_t *value = schema_load(q->body ? q->body : "", q->body_len, &e);

	if (!value) {
		mcp_refuse(x, 400, NULL, MCP_PARSE_ERROR, NULL, e.message);
		return NULL;
	}
	mcp_message_read(value, &m);
	if (m.kind == MCP_NONSENSE && !json_is_array(value)) {
		mcp_refuse(x, 400, m.id, MCP_INVALID_REQUEST, NULL, m.why);
		json_decref(value);
		return NULL;
	}
	return value;
}

void mcp_sse_post(struct mcp *mcp, struct http_exchange *x)
{
	_buf_ struct buf name = BUF_INIT(NAME_MAX_BYTES);
	struct mcp_session *s;
	struct mcp_channel *p = NULL;
	json_t *value;

	if (name_of(x, &name)) {
		s = mcp_session_find(mcp, context_of(x)->owner, buf_str(&name));
		p = s ? mcp_channel_of(s) : NULL;
	}
	if (!p || p->ops != &ops || p->dead) {
		mcp_refuse(x, 404, NULL, MCP_NO_SESSION, NULL,
			   "there is no such session: open a stream with GET /mcp/sse");
		return;
	}
	value = message_of(x);
	if (!value)
		return;
	reply_empty(x, 202); /* before anything that is said on the stream */
	mcp_channel_take_json(p, value);
	json_decref(value);
}
