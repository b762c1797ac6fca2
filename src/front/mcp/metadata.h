/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metadata.h - Where clients of /mcp get a token, when the operator named a place (RFC 9728).
 *
 * We only say so: what is let in is what the token file says (token.h).
 */
#ifndef CAISSON_FRONT_MCP_METADATA_H
#define CAISSON_FRONT_MCP_METADATA_H

struct buf;
struct front;
struct http_exchange;

/* mcp_metadata_url() - For a request below /mcp: where that is said. Appends; nothing when nothing
 * is said. */
void mcp_metadata_url(const struct front *f, const struct http_exchange *x, struct buf *out);
/* mcp_metadata_json() - The document itself; only when such a place is named. */
void mcp_metadata_json(const struct front *f, const struct http_exchange *x, struct buf *out);

#endif
