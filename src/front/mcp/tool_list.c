/* SPDX-License-Identifier: Apache-2.0 */
/* tool_list.c - Entry by entry, until there are enough. */
#include "front/mcp/tool_list.h"

#include <string.h>

#include "base/json.h"

#define TEXT_MAX (16u << 20)

void mcp_list_begin(struct mcp_list *l, struct json *j, const char *key, size_t max)
{
	json_member_array(j, key);
	*l = (struct mcp_list){ .j = j, .max = max, .begin = j->out->len };
	buf_init(&l->text, TEXT_MAX);
}

bool mcp_list_entry(struct mcp_list *l)
{
	l->was = *l->j;
	l->data_at = l->j->out->len;
	l->text_at = l->text.len;
	return !l->full;
}

bool mcp_list_next(struct mcp_list *l)
{
	struct buf *b = l->j->out;

	if (!b->err && !l->text.err &&
	    (l->n == 0 || (b->len - l->begin <= l->max && l->text.len <= l->max))) {
		l->n++;
		return true;
	}
	*l->j = l->was;
	b->len = l->data_at;
	b->err = 0;
	l->text.len = l->text_at;
	l->text.err = 0;
	l->full = true;
	return false;
}

void mcp_list_end(struct mcp_list *l, bool more, const char *cursor)
{
	bool cut = l->full || more;

	json_array_end(l->j);
	json_member_bool(l->j, "truncated", cut);
	if (l->n == 0)
		(void)buf_puts(&l->text, cut ? "(none here)" : "(empty)");
	if (cut && cursor) {
		json_member_str(l->j, "next_cursor", cursor);
		(void)buf_puts(&l->text, "[there are more: go on with cursor ");
		(void)json_quote(&l->text, cursor, strlen(cursor));
		(void)buf_puts(&l->text, "]");
	} else if (cut) {
		(void)buf_puts(&l->text, "[there are more: list a part of it]");
	}
}

void mcp_list_free(struct mcp_list *l)
{
	buf_free(&l->text);
}
