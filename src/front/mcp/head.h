/* SPDX-License-Identifier: Apache-2.0 */
/* head.h - HTTP requests of the protocol: what their heads must say, and how they are refused. */
#ifndef CAISSON_FRONT_MCP_HEAD_H
#define CAISSON_FRONT_MCP_HEAD_H

#include <jansson.h>
#include <stdbool.h>

struct http_exchange;

#define MCP_EVENTS "text/event-stream"

/* mcp_accepts() - Whether the client takes an answer of this type. One that does not say takes any.
 */
bool mcp_accepts(const struct http_exchange *x, const char *type);
/* mcp_head_ok() - Of a POST: JSON goes both ways. False: it is answered. */
bool mcp_head_ok(struct http_exchange *x);
/* mcp_refuse() - An answer that is an error of the protocol. @id, @data: borrowed, or NULL. */
void mcp_refuse(struct http_exchange *x, int status, const json_t *id, int code, const json_t *data,
		const char *message);

#endif
