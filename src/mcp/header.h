/* SPDX-License-Identifier: Apache-2.0 */
/*
 * header.h - Values of the body that are repeated as HTTP headers (Mcp-Name, Mcp-Param-...).
 *
 * A value that is not plain ASCII, or is ambiguous, comes as =?base64?...?= with UTF-8 inside.
 */
#ifndef CAISSON_MCP_HEADER_H
#define CAISSON_MCP_HEADER_H

#include <jansson.h>
#include <stdbool.h>

struct buf;

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
