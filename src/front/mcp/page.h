/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page.h - Lists in pieces. A cursor says how many entries came before; to a client it is opaque.
 */
#ifndef CAISSON_FRONT_MCP_PAGE_H
#define CAISSON_FRONT_MCP_PAGE_H

#include <stdbool.h>
#include <stddef.h>

struct json;
struct mcp_call;

#define MCP_PAGE_MAX 200u

struct mcp_page {
	size_t from, seen;
};

/* mcp_page_begin() - From params.cursor. False: it is none of ours, which has been answered. */
bool mcp_page_begin(struct mcp_call *c, struct mcp_page *ret);
/* mcp_page_takes() - Ask once for each entry of the whole list, in order: whether it is on this
 * page. */
bool mcp_page_takes(struct mcp_page *p);
/* mcp_page_end() - Member nextCursor, when there is more. */
void mcp_page_end(const struct mcp_page *p, struct json *j);

#endif
