/* SPDX-License-Identifier: Apache-2.0 */
/* http.h - HTTP requests of the protocol: checks of their heads, their sessions, and refusals. */
#ifndef CAISSON_FRONT_MCP_HTTP_H
#define CAISSON_FRONT_MCP_HTTP_H

#include <jansson.h>
#include <stdbool.h>

struct http_exchange;
struct mcp;
struct mcp_session;

#define MCP_EVENTS "text/event-stream"

/* mcp_accepts() - Whether the client takes an answer of this type: by Accept; without it, any. */
bool mcp_accepts(const struct http_exchange *x, const char *type);
/* mcp_head_ok() - Of a POST: JSON goes both ways. False: it is answered. */
bool mcp_head_ok(struct http_exchange *x);
/* mcp_stream_wanted() - Of a GET: whether to answer with a stream of events. False: it is answered,
 * as a HEAD or with the types that there are. */
bool mcp_stream_wanted(struct http_exchange *x);
/* mcp_stream_open() - Send the head of a stream of events. */
void mcp_stream_open(struct http_exchange *x);
/* mcp_refuse() - An answer that is an error of the protocol. @id, @data: borrowed, or NULL. */
void mcp_refuse(struct http_exchange *x, int status, const json_t *id, int code, const json_t *data,
		const char *message);

/* mcp_http_session() - The session that the request names; NULL: it is answered. @id: of its
 * message, or NULL. */
struct mcp_session *mcp_http_session(struct mcp *mcp, struct http_exchange *x, const json_t *id);

#endif
