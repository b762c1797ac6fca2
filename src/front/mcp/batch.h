/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch.h - Several messages in one, as the older revisions of the protocol have it: their answers
 * are sent together.
 *
 * Each message is treated as one that came alone; only the handshake is not part of a batch.
 * Notifications are sent at once.
 */
#ifndef CAISSON_FRONT_MCP_BATCH_H
#define CAISSON_FRONT_MCP_BATCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct buf;
struct mcp_session;

#define MCP_BATCH_MAX 64u /* messages */

struct mcp_batch_ops {
	void (*send)(void *at, const struct buf *json);
	bool (*congested)(const void *at);
	/* All is answered. @json: the list; NULL: there is nothing to say. The batch is freed
	 * afterwards. */
	void (*done)(void *at, const struct buf *json);
};

/* mcp_batch_why_not() - Whether this list may be a batch of this session. NULL: yes; else why not,
 * static. */
const char *mcp_batch_why_not(const struct mcp_session *s, const json_t *list);
/* mcp_batch_asks() - Whether there are requests in it, so that there will be answers. */
bool mcp_batch_asks(const json_t *list);
/* mcp_batch_run() - @max: bytes of all answers. False: no memory. ops->done may be called before it
 * returns. */
bool mcp_batch_run(struct mcp_session *s, json_t *list, size_t max, const struct mcp_batch_ops *ops,
		   void *at);

#endif
