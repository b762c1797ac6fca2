/* SPDX-License-Identifier: Apache-2.0 */
/*
 * duplex.c - GET /mcp/ws: the protocol's rules for standard input and output, over a WebSocket.
 *
 * The other end is `caisson mcp`, which has the pipes (src/remote/relay.c). One text message is one
 * line. A binary one is a line that is no text, and gets an error; an empty one says that no more
 * lines come: the socket is closed when all is answered. Nothing is read from a client that does
 * not read.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "front/api/handlers.h"
#include "front/http/reply.h"
#include "front/http/serve.h"
#include "front/mcp/pipe.h"
#include "front/support/front.h"
#include "net/conn.h"
#include "net/http.h"
#include "net/ws.h"

#define NORMAL 1000
#define GOING_AWAY 1001

struct duplex {
	struct mcp_pipe pipe;
	struct ws *ws;
};

static void duplex_write(struct mcp_pipe *p, const struct buf *json)
{
	struct duplex *d = (struct duplex *)p;

	if (conn_queued(ws_conn(d->ws)) + json->len > MCP_PIPE_QUEUE_MAX) {
		mcp_pipe_doom(p);
		return;
	}
	(void)ws_send_buf(d->ws, true, json);
	if (ws_congested(d->ws))
		ws_pause(d->ws, true);
}

static bool duplex_congested(const struct mcp_pipe *p)
{
	const struct duplex *d = (const struct duplex *)p;

	return ws_congested(d->ws);
}

static void duplex_close(struct mcp_pipe *p, bool lost)
{
	struct duplex *d = (struct duplex *)p;

	ws_close(d->ws, lost ? GOING_AWAY : NORMAL, NULL);
}

static const struct mcp_pipe_ops pipe_ops = { duplex_write, duplex_congested, duplex_close };

static void on_message(struct ws *w, bool text, const char *data, size_t len)
{
	struct duplex *d = ws_user(w);

	if (text)
		mcp_pipe_take(&d->pipe, data, len);
	else if (len > 0)
		mcp_pipe_refuse(&d->pipe, "a message is JSON text in UTF-8");
	else
		mcp_pipe_no_input(&d->pipe);
}

static void on_drain(struct ws *w)
{
	struct duplex *d = ws_user(w);

	ws_pause(w, false);
	mcp_pipe_drained(&d->pipe);
}

static void on_close(struct ws *w, int code)
{
	struct duplex *d = ws_user(w);

	(void)code;
	mcp_pipe_end(&d->pipe);
	free(d);
}

static const struct ws_ops ops = { .on_message = on_message,
				   .on_drain = on_drain,
				   .on_close = on_close };

void handle_mcp_ws(struct front *f, struct http_exchange *x, const struct route_params *p)
{
	struct duplex *d;

	(void)p;
	if (!http_is_ws(x)) {
		http_add_header(x, "Upgrade", "websocket");
		reply_error(x, 426, "upgrade_required", NULL, "use 'caisson mcp', or POST /mcp",
			    "this is no WebSocket handshake");
		return;
	}
	d = calloc(1, sizeof(*d));
	if (!d) {
		reply_retry(x, 503, 1, "out_of_memory", NULL, "the daemon is out of memory");
		return;
	}
	mcp_pipe_init(&d->pipe, f, context_of(x)->owner, &pipe_ops);
	d->ws = http_upgrade_ws(x, &ops, d, MCP_PIPE_MESSAGE_MAX);
	if (!d->ws)
		free(d);
}
