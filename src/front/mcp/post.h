/* SPDX-License-Identifier: Apache-2.0 */
/* post.h - A POST of requests, from here to its answer. */
#ifndef CAISSON_FRONT_MCP_POST_H
#define CAISSON_FRONT_MCP_POST_H

#include <jansson.h>

#include "mcp/era.h"

struct front;
struct http_exchange;
struct mcp_session;

/* mcp_post_run() - One request. @session: of a legacy client. @message: borrowed. Answers, now or
 * later. */
void mcp_post_run(struct front *f, struct http_exchange *x, struct mcp_session *session,
		  enum mcp_era era, json_t *message);
/* mcp_post_resume() - The rest of a stream, after the event @last. Answers. */
void mcp_post_resume(struct mcp_session *session, struct http_exchange *x, const char *last);
/* mcp_post_batch() - Several; a batch that the session may send (batch.h). */
void mcp_post_batch(struct front *f, struct http_exchange *x, struct mcp_session *session,
		    json_t *list);

#endif
