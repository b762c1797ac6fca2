/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tool_list.h - Lists for a model: as many entries as fit, told as lines and as data, and where to
 * go on.
 *
 * Life: mcp_list_begin() inside an open object -> for each entry mcp_list_entry(), its object and
 * its line, mcp_list_next() -> mcp_list_end(). An entry that is too much is taken back whole, but
 * for the first: a page is never empty.
 */
#ifndef CAISSON_FRONT_MCP_TOOL_LIST_H
#define CAISSON_FRONT_MCP_TOOL_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/json.h"

struct mcp_list {
	struct json *j;  /* the entries go there */
	struct buf text; /* a line for each */
	size_t max;      /* bytes of either */
	size_t n;        /* entries taken */
	bool full;       /* there are more than were taken */
	struct json was; /* before the entry at hand */
	size_t begin, data_at, text_at;
};

/* mcp_list_begin() - Opens the array @key. */
void mcp_list_begin(struct mcp_list *l, struct json *j, const char *key, size_t max);
/* mcp_list_entry() - False: there is no room for another. */
bool mcp_list_entry(struct mcp_list *l);
/* mcp_list_next() - False: the entry did not fit, and is not there any more. */
bool mcp_list_next(struct mcp_list *l);
/*
 * mcp_list_end() - The array's end, then members `truncated` and, when it is, `next_cursor`; and a
 * line about that.
 * @more: the caller knows of further ones. @cursor: names the last that was taken; NULL: nobody can
 * go on.
 */
void mcp_list_end(struct mcp_list *l, bool more, const char *cursor);
void mcp_list_free(struct mcp_list *l);

#endif
