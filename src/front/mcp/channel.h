/* SPDX-License-Identifier: Apache-2.0 */
/*
 * channel.h - A client on a connection of its own: messages both ways, in any order, without HTTP
 * headers.
 *
 * The first HTTP transport (sse.c) and the WebSocket of `caisson mcp` (websocket.c) differ only in
 * how bytes travel. Each message has its era. A legacy client has one session, which ends with the
 * channel; a modern one cancels with notifications/cancelled. The end of the channel cancels
 * everything that was asked for on it: nobody could read the answers.
 */
#ifndef CAISSON_FRONT_MCP_CHANNEL_H
#define CAISSON_FRONT_MCP_CHANNEL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "front/http/token.h" /* OWNER_MAX */
#include "net/loop.h"

struct buf;
struct mcp;
struct mcp_channel;
struct mcp_session;

#define MCP_CHANNEL_MESSAGE_MAX (16u << 20) /* of one message, either way */
#define MCP_CHANNEL_QUEUE_MAX                                                                      \
	(64u << 20) /* what waits for a client that does not read: it is dropped */

struct mcp_channel_ops {
	/* One message; one that cannot be sent: mcp_channel_doom(). */
	void (*write)(struct mcp_channel *p, const struct buf *json);
	bool (*congested)(const struct mcp_channel *p);
	/* Close the connection: all was answered (@lost false), or it cannot go on.
	 * mcp_channel_end() follows. */
	void (*close)(struct mcp_channel *p, bool lost);
};

struct mcp_channel {
	const struct mcp_channel_ops *ops;
	struct mcp *mcp;
	char owner[OWNER_MAX];
	struct mcp_session *session; /* of a legacy client; NULL: none yet */
	size_t n_calls;              /* under way; a batch is one */
	bool no_input;               /* nothing more is asked: over when all is answered */
	bool dead;                   /* nothing is written any more */
	struct deferred doom;
};

void mcp_channel_init(struct mcp_channel *p, struct mcp *mcp, const char *owner,
		      const struct mcp_channel_ops *ops);
/* mcp_channel_shake() - Make its session now. False: there are too many. */
bool mcp_channel_shake(struct mcp_channel *p);
/* mcp_channel_take() - Bytes of the client: a message, or an error that is answered. */
void mcp_channel_take(struct mcp_channel *p, const char *text, size_t len);
/* mcp_channel_take_json() - The same, read already; borrowed. */
void mcp_channel_take_json(struct mcp_channel *p, json_t *value);
/* mcp_channel_refuse() - Answer bytes that are no message. */
void mcp_channel_refuse(struct mcp_channel *p, const char *why);
/* mcp_channel_drained() - It can be written to again. */
void mcp_channel_drained(struct mcp_channel *p);
/* mcp_channel_no_input() - The client sends no more: ops->close when every request is answered. */
void mcp_channel_no_input(struct mcp_channel *p);
/* mcp_channel_doom() - Close it at the end of this round of the loop; for callers inside it. */
void mcp_channel_doom(struct mcp_channel *p);
/* mcp_channel_end() - The connection is gone. Nothing of it is called any more. */
void mcp_channel_end(struct mcp_channel *p);

/* mcp_channel_of() - The channel whose session this is, or NULL: it is one of Streamable HTTP. */
struct mcp_channel *mcp_channel_of(const struct mcp_session *s);

#endif
