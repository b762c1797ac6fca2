/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipe.h - A client on a wire of its own: messages both ways, in any order, without HTTP headers.
 *
 * The old pair of HTTP and events (sse.c) and standard input and output (duplex.c) differ in how
 * bytes travel, and in nothing else. Each message says for itself which era it is of. A legacy
 * client has one session, which ends with the wire; a modern one cancels with
 * notifications/cancelled. When the wire ends, everything that was asked for on it is cancelled:
 * nobody could read the answers.
 */
#ifndef CAISSON_FRONT_MCP_PIPE_H
#define CAISSON_FRONT_MCP_PIPE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "front/http/token.h" /* OWNER_MAX */
#include "net/loop.h"

struct buf;
struct front;
struct mcp_pipe;
struct mcp_session;

#define MCP_PIPE_MESSAGE_MAX (16u << 20) /* of one message, either way */
#define MCP_PIPE_QUEUE_MAX                                                                         \
	(64u << 20) /* what waits for a client that does not read: it is dropped */

struct mcp_pipe_ops {
	/* One message. Whoever could not: mcp_pipe_doom(). */
	void (*write)(struct mcp_pipe *p, const struct buf *json);
	bool (*congested)(const struct mcp_pipe *p);
	/* Close the wire: all was answered (@lost false), or it can not go on. mcp_pipe_end()
	 * follows. */
	void (*close)(struct mcp_pipe *p, bool lost);
};

struct mcp_pipe {
	const struct mcp_pipe_ops *ops;
	struct front *f;
	char owner[OWNER_MAX];
	struct mcp_session *session; /* of a legacy client; NULL: none yet */
	size_t n_calls;              /* under way; a batch is one */
	bool no_input;               /* nothing more is asked: over when all is answered */
	bool dead;                   /* nothing is written any more */
	struct deferred doom;
};

void mcp_pipe_init(struct mcp_pipe *p, struct front *f, const char *owner,
		   const struct mcp_pipe_ops *ops);
/* mcp_pipe_shake() - Make its session now. False: there are too many. */
bool mcp_pipe_shake(struct mcp_pipe *p);
/* mcp_pipe_take() - What the client said: one message as text, or anything. */
void mcp_pipe_take(struct mcp_pipe *p, const char *text, size_t len);
/* mcp_pipe_take_json() - The same, read already; borrowed. */
void mcp_pipe_take_json(struct mcp_pipe *p, json_t *value);
/* mcp_pipe_refuse() - Something came that is no message. */
void mcp_pipe_refuse(struct mcp_pipe *p, const char *why);
/* mcp_pipe_drained() - It can be written to again. */
void mcp_pipe_drained(struct mcp_pipe *p);
/* mcp_pipe_no_input() - The client says no more: ops->close when what it asked for is answered. */
void mcp_pipe_no_input(struct mcp_pipe *p);
/* mcp_pipe_doom() - Close it at the end of this round; for those who are called from inside it. */
void mcp_pipe_doom(struct mcp_pipe *p);
/* mcp_pipe_end() - The wire is gone. Nothing of it is called any more. */
void mcp_pipe_end(struct mcp_pipe *p);

/* mcp_pipe_of() - The pipe whose session this is, or NULL: it is one of Streamable HTTP. */
struct mcp_pipe *mcp_pipe_of(const struct mcp_session *s);

#endif
