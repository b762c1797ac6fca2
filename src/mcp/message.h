/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message.h - One JSON-RPC 2.0 message of the Model Context Protocol: what it is, and what is in
 * it.
 */
#ifndef CAISSON_MCP_MESSAGE_H
#define CAISSON_MCP_MESSAGE_H

#include <jansson.h>

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

#endif
