/* SPDX-License-Identifier: Apache-2.0 */
/*
 * websocket.c - GET /mcp/ws: the protocol's rules for standard input and output, over a WebSocket.
 *
 * The other end is `caisson mcp`, which has the pipes (src/remote/relay.c). One text message is one
 * line. A binary one is a line that is no text, and gets an error; an empty one is the end of
 * input: the socket is closed when every request is answered. Nothing is read from a client that
 * does not read.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "front/api/handlers.h"
#include "front/http/reply.h"
#include "front/http/serve.h"
#include "front/mcp/channel.h"
#include "net/conn.h"
#include "net/http.h"
#include "net/ws.h"

#define NORMAL 1000
#define GOING_AWAY 1001

struct client {
	struct mcp_channel channel;
	struct ws *ws;
};

static void client_write(struct mcp_channel *p, const struct buf *json)
{
	struct client *d = (struct client *)p;

	if (conn_queued(ws_conn(d->ws)) + json->len > MCP_CHANNEL_QUEUE_MAX) {
		mcp_channel_doom(p);
		return;
	}
	(void)ws_send_buf(d->ws, true, json);
	if (ws_congested(d->ws))
		ws_pause(d->ws, true);
}

static bool client_congested(const struct mcp_channel *p)
{
	const struct client *d = (const struct client *)p;

	return ws_congested(d->ws);
}

static void client_close(struct mcp_channel *p, bool lost)
{
	struct client *d = (struct client *)p;

	ws_close(d->ws, lost ? GOING_AWAY : NORMAL, NULL);
}

static const struct mcp_channel_ops channel_ops = { client_write, client_congested, client_close };

static void on_message(struct ws *w, bool text, const char *data, size_t len)
{
	struct client *d = ws_user(w);

	if (text)
		mcp_channel_take(&d->channel, data, len);
	else if (len > 0)
		mcp_channel_refuse(&d->channel, "a message is JSON text in UTF-8");
	else
		mcp_channel_no_input(&d->channel);
}

static void on_drain(struct ws *w)
{
	struct client *d = ws_user(w);

	ws_pause(w, false);
	mcp_channel_drained(&d->channel);
}

static void on_close(struct ws *w, int code)
{
	struct client *d = ws_user(w);

	(void)code;
	mcp_channel_end(&d->channel);
	free(d);
}

static const struct ws_ops ops = { .on_message = on_message,
				   .on_drain = on_drain,
				   .on_close = on_close };

void handle_mcp_ws(struct mcp *mcp, struct http_exchange *x)
{
	struct client *d;

	if (!reply_is_ws(x, "use 'caisson mcp', or POST /mcp"))
		return;
	d = calloc(1, sizeof(*d));
	if (!d) {
		reply_no_memory(x);
		return;
	}
	mcp_channel_init(&d->channel, mcp, context_of(x)->owner, &channel_ops);
	d->ws = http_upgrade_ws(x, &ops, d, MCP_CHANNEL_MESSAGE_MAX);
	if (!d->ws)
		free(d);
}
