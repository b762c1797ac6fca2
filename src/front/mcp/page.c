/* SPDX-License-Identifier: Apache-2.0 */
/* page.c - Cursors. */
#include "front/mcp/page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "front/mcp/call.h"

#define FORM "p%zx"

bool mcp_page_begin(struct mcp_call *c, struct mcp_page *ret)
{
	const json_t *cursor = json_object_get(c->m.params, "cursor");
	const char *text = json_string_value(cursor);
	char again[32];

	*ret = (struct mcp_page){ 0 };
	if (!cursor || (text && !*text))
		return true;
	/* Only what we would have written ourselves. */
	if (text && text[0] == 'p') {
		ret->from = strtoul(text + 1, NULL, 16);
		(void)snprintf(again, sizeof(again), FORM, ret->from);
		if (strcmp(again, text) == 0)
			return true;
	}
	mcp_fail(c, MCP_INVALID_PARAMS, "params.cursor is none of ours: begin without one");
	return false;
}

bool mcp_page_takes(struct mcp_page *p)
{
	size_t i = p->seen++;

	return i >= p->from && i - p->from < MCP_PAGE_MAX;
}

void mcp_page_end(const struct mcp_page *p, struct json *j)
{
	char text[32];

	if (p->seen <= p->from || p->seen - p->from <= MCP_PAGE_MAX)
		return;
	(void)snprintf(text, sizeof(text), FORM, p->from + MCP_PAGE_MAX);
	json_member_str(j, "nextCursor", text);
}
