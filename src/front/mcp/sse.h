/* SPDX-License-Identifier: Apache-2.0 */
/* sse.h - Messages that are posted for a stream of the protocol's first HTTP transport. */
#ifndef CAISSON_FRONT_MCP_SSE_H
#define CAISSON_FRONT_MCP_SSE_H

#include <stdbool.h>

struct http_exchange;
struct mcp;

/* mcp_sse_named() - Whether the query names a session, as the stream's first event said. */
bool mcp_sse_named(const struct http_exchange *x);
/* mcp_sse_post() - Answers: 202, or why not. */
void mcp_sse_post(struct mcp *mcp, struct http_exchange *x);

#endif
