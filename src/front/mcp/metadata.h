/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metadata.h - The authorization server for clients of /mcp, if the operator named one (RFC 9728).
 *
 * The daemon only names it: the token file decides which tokens are accepted (token.h).
 */
#ifndef CAISSON_FRONT_MCP_METADATA_H
#define CAISSON_FRONT_MCP_METADATA_H

struct buf;
struct http_exchange;
struct mcp;

/* mcp_metadata_url() - For a request below /mcp: the address of the document. Appends; nothing for
 * other requests, or without an authorization server. */
void mcp_metadata_url(const struct mcp *mcp, const struct http_exchange *x, struct buf *out);

#endif
