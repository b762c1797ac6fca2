/* SPDX-License-Identifier: Apache-2.0 */
/*
 * era.h - Which of the two eras of the Model Context Protocol a message belongs to.
 *
 * Legacy: revisions with an `initialize` handshake, up to 2025-11-25. Modern: 2026-07-28, where
 * every request names its client and version, and repeats the parts that a proxy
 * routes by as HTTP headers. Both are served at one address; a message is modern when it, or its
 * header, claims to be.
 */
#ifndef CAISSON_MCP_ERA_H
#define CAISSON_MCP_ERA_H

#include <jansson.h>
#include <stdbool.h>

#include "mcp/message.h"

#define MCP_MODERN_VERSION "2026-07-28"
#define MCP_LEGACY_VERSION "2025-11-25"  /* the newest with a handshake */
#define MCP_ASSUMED_VERSION "2025-03-26" /* of a legacy request that does not say */

#define MCP_META "io.modelcontextprotocol/"
#define MCP_META_VERSION MCP_META "protocolVersion"
#define MCP_META_CAPABILITIES MCP_META "clientCapabilities"
#define MCP_META_LOG_LEVEL MCP_META "logLevel"
#define MCP_META_SERVER MCP_META "serverInfo"
#define MCP_META_SUBSCRIPTION MCP_META "subscriptionId"

enum mcp_era { MCP_LEGACY, MCP_MODERN };

/* Headers of an HTTP request; NULL where absent. */
struct mcp_headers {
	const char *version; /* MCP-Protocol-Version */
	const char *method;  /* Mcp-Method */
	const char *name;    /* Mcp-Name */
};

/* Where a message belongs, or why nowhere. */
struct mcp_ruling {
	enum mcp_era era;
	int http; /* 0: it is in order; else the status of the refusal */
	int code; /* of the refusal, JSON-RPC's */
	char message[240];
	json_t *data; /* of the refusal; the caller's to free; or NULL */
};

/*
 * mcp_rule() - @headers: NULL on a wire without any (stdio).
 * @m: a message that makes sense. Whether there is such a method is not looked at.
 */
void mcp_rule(const struct mcp_message *m, const struct mcp_headers *headers,
	      struct mcp_ruling *ret);

/* mcp_legacy_version() - The static text of a version with a handshake that we speak, or NULL. */
const char *mcp_legacy_version(const char *version);

/* mcp_version_has_batches() - Of a version with a handshake: whether several messages may come as
 * one. */
bool mcp_version_has_batches(const char *version);

/* mcp_named() - The member of params that Mcp-Name repeats for this method, or NULL. */
const char *mcp_named(const char *method);

#endif
