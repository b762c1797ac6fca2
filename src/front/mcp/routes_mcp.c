/* SPDX-License-Identifier: Apache-2.0 */
/* routes_mcp.c - The Model Context Protocol. Its messages have a form of their own, and are not in
 * OpenAPI. */
#include "front/api/handlers.h"
#include "front/api/routes.h"

#define ROW(method_, path_, name_, summary_, handler_, ...)                                        \
	{                                                                                          \
		.method = (method_), .path = (path_), .tag = "mcp", .handler.mcp = (handler_),     \
		.op = OPERATION((name_), (summary_), (summary_)),                                  \
		.responses = RESPONSES(RESPONSE(200, NULL, "A message, or a stream of them.")),    \
		.raw = true, .hidden = true, __VA_ARGS__                                           \
	}
/* RFC 9728, where --mcp-auth-server names a server. */
#define METADATA "/.well-known/oauth-protected-resource"

const struct route routes_mcp[] = {
	/* With sessionId in the query, a message for a stream of /mcp/sse. */
	ROW("POST", "/mcp", "mcpPost", "A message, by Streamable HTTP", handle_mcp_post),
	ROW("GET", "/mcp", "mcpGet", "Messages of a session that belong to no request",
	    handle_mcp_get),
	ROW("DELETE", "/mcp", "mcpDelete", "End a session with everything that it runs",
	    handle_mcp_delete),
	ROW("GET", "/mcp/sse", "mcpSse", "A stream of the protocol's first HTTP transport",
	    handle_mcp_sse),
	ROW("GET", "/mcp/ws", "mcpWs", "Messages both ways, for caisson mcp", handle_mcp_ws),
	ROW("GET", METADATA, "mcpMetadata", "Where tokens for /mcp come from", handle_mcp_metadata,
	    .open = true),
	ROW("GET", METADATA "/mcp", "mcpMetadataOfPath", "Where tokens for /mcp come from",
	    handle_mcp_metadata, .open = true),
	{ 0 },
};
