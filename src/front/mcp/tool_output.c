/* SPDX-License-Identifier: Apache-2.0 */
/* tool_output.c - Results of tools: blocks for a model, and the same as data. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "front/execution.h"
#include "front/mcp/tool.h"

void mcp_output_begin(const struct mcp_call *c, struct mcp_output *o)
{
	mcp_answer_begin(c, &o->a);
	json_key(&o->a.j, "content");
	json_array_begin(&o->a.j);
}

void mcp_output_text(struct mcp_output *o, const char *text, size_t len)
{
	json_object_begin(&o->a.j);
	json_member_str(&o->a.j, "type", "text");
	json_key(&o->a.j, "text");
	(void)json_strn(&o->a.j, text, len);
	json_object_end(&o->a.j);
}

void mcp_output_image(struct mcp_output *o, const char *base64, size_t len, const char *mime)
{
	json_object_begin(&o->a.j);
	json_member_str(&o->a.j, "type", "image");
	json_key(&o->a.j, "data");
	(void)json_strn(&o->a.j, base64, len);
	json_member_str(&o->a.j, "mimeType", mime);
	json_object_end(&o->a.j);
}

void mcp_output_link(struct mcp_output *o, const char *uri, const char *name, const char *mime,
		     uint64_t size)
{
	json_object_begin(&o->a.j);
	json_member_str(&o->a.j, "type", "resource_link");
	json_member_str(&o->a.j, "uri", uri);
	json_member_str(&o->a.j, "name", name);
	if (mime)
		json_member_str(&o->a.j, "mimeType", mime);
	json_member_uint(&o->a.j, "size", size);
	json_object_end(&o->a.j);
}

void mcp_output_end(struct mcp_call *c, struct mcp_output *o, const struct buf *structured,
		    bool is_error)
{
	json_array_end(&o->a.j);
	if (structured) {
		json_key(&o->a.j, "structuredContent");
		json_raw(&o->a.j, buf_str(structured), structured->len);
	}
	json_member_bool(&o->a.j, "isError", is_error);
	mcp_answer_end(c, &o->a);
}

static void refuse(struct mcp_call *c, const char *code, const char *hint, const char *message)
{
	_buf_ struct buf b = BUF_INIT(4096);
	struct mcp_output o;

	(void)buf_printf(&b, "%s (%s)", message, code);
	if (hint && hint[0])
		(void)buf_printf(&b, "\nhint: %s", hint);
	mcp_output_begin(c, &o);
	mcp_output_text(&o, buf_str(&b), b.len);
	mcp_output_end(c, &o, NULL, true);
}

void mcp_output_refuse(struct mcp_call *c, const struct refusal *r)
{
	char again[64], hint[512];

	(void)snprintf(again, sizeof(again), "try again in %u s", r->retry_after_s);
	(void)snprintf(hint, sizeof(hint), "%s%s%s", r->hint ? r->hint : "",
		       r->hint && r->retry_after_s ? "; " : "", r->retry_after_s ? again : "");
	refuse(c, r->code, hint, r->message);
}

void mcp_output_fail(struct mcp_call *c, const char *code, const char *hint, const char *fmt, ...)
{
	char message[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	refuse(c, code, hint, message);
}
