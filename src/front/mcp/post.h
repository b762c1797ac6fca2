/* SPDX-License-Identifier: Apache-2.0 */
/* post.h - A POST whose answer is a stream that its client lost. */
#ifndef CAISSON_FRONT_MCP_POST_H
#define CAISSON_FRONT_MCP_POST_H

struct http_exchange;
struct mcp_session;

/* mcp_post_resume() - The rest of a stream, after the event @last. Answers. */
void mcp_post_resume(struct mcp_session *session, struct http_exchange *x, const char *last);

#endif
