/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message.h - One JSON-RPC 2.0 message of the Model Context Protocol: its kind, its parts, and the
 * era of the protocol that it belongs to.
 *
 * Legacy: revisions with an `initialize` handshake, up to 2025-11-25. Modern: 2026-07-28, where
 * every request names its client and version, and repeats the parts that a proxy routes by as HTTP
 * headers. Both are served at one address; a message is modern when it, or its header, claims to
 * be.
 */
#ifndef CAISSON_MCP_MESSAGE_H
#define CAISSON_MCP_MESSAGE_H

#include <jansson.h>
#include <stdbool.h>

struct buf;

/* Codes of JSON-RPC, and those of the protocol's revision of 2026. */
#define MCP_PARSE_ERROR (-32700)
#define MCP_INVALID_REQUEST (-32600)
#define MCP_NO_METHOD (-32601)
#define MCP_INVALID_PARAMS (-32602)
#define MCP_INTERNAL (-32603)
#define MCP_BAD_SESSION (-32000)   /* legacy: what is wrong with the HTTP request */
#define MCP_NO_SESSION (-32001)    /* legacy */
#define MCP_NO_RESOURCE (-32002)   /* legacy; modern has MCP_INVALID_PARAMS */
#define MCP_BAD_HEADER (-32020)    /* a header is missing, or differs from the body */
#define MCP_NO_CAPABILITY (-32021) /* the client did not declare what this needs */
#define MCP_NO_VERSION (-32022)    /* the version that the client claims is not spoken here */

enum mcp_kind { MCP_REQUEST, MCP_NOTIFICATION, MCP_RESPONSE, MCP_NONSENSE };

/* Everything is borrowed from the message. */
struct mcp_message {
	enum mcp_kind kind;
	json_t *id; /* string or integer: of requests and responses; of nonsense when it has one */
	const char *method;
	json_t *params;         /* an object, or NULL */
	json_t *meta;           /* params._meta, an object, or NULL */
	json_t *result, *error; /* of a response: one of them */
	const char *why;        /* nonsense: what is wrong; static */
};

/* mcp_message_read() - @value: any JSON value. Pure. */
void mcp_message_read(json_t *value, struct mcp_message *ret);

/* ---- eras ---------------------------------------------------------------------------------- */

#define MCP_MODERN_VERSION "2026-07-28"
#define MCP_LEGACY_VERSION "2025-11-25" /* the newest with a handshake */

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

/*
 * ---- Values of the body that are repeated as HTTP headers (Mcp-Name, Mcp-Param-...) ------------
 *
 * A value that is not plain ASCII, or is ambiguous, comes as =?base64?...?= with UTF-8 inside.
 */

/* mcp_header_decode() - Appends to @out. 0, or -EINVAL: bad base64, or NUL or broken UTF-8 in it;
 * or the buffer's error. Pure. */
int mcp_header_decode(const char *value, struct buf *out);

/*
 * mcp_header_encode() - Appends @value as a header has it, coded where it has to be. 0 or the
 * buffer's error. Pure.
 * @value: UTF-8.
 */
int mcp_header_encode(const char *value, struct buf *out);

/*
 * mcp_header_mirrors() - Whether the header equals the value of the body: a string, a boolean or an
 * integer as text. A value that is absent or null has no header. NULL: absent. Pure.
 */
bool mcp_header_mirrors(const char *header, const json_t *value);

#endif
