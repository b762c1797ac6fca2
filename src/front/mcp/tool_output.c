/* SPDX-License-Identifier: Apache-2.0 */
/* tool_output.c - Results of tools: blocks for a model, and the same as data. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "front/mcp/tool.h"
#include "front/sandbox/execution.h"
#include "wire/files.h"

void mcp_output_begin(const struct mcp_call *c, struct mcp_output *o)
{
	mcp_answer_begin(c, &o->a);
	json_member_array(&o->a.j, "content");
	buf_init(&o->data, MCP_ANSWER_MAX);
	json_init(&o->s, &o->data);
	o->pictures = o->picture_bytes = 0;
}

void mcp_output_move(struct mcp_output *to, struct mcp_output *from)
{
	*to = *from;
	to->a.j.out = &to->a.buf;
	to->s.out = &to->data;
	memset(from, 0, sizeof(*from));
}

void mcp_output_drop(struct mcp_output *o)
{
	buf_free(&o->a.buf);
	buf_free(&o->data);
}

void mcp_output_text(struct mcp_output *o, const char *text, size_t len)
{
	json_object_begin(&o->a.j);
	json_member_str(&o->a.j, "type", "text");
	json_key(&o->a.j, "text");
	(void)json_strn(&o->a.j, text, len);
	json_object_end(&o->a.j);
}

void mcp_output_printf(struct mcp_output *o, const char *fmt, ...)
{
	char text[FILES_PATH_MAX + 256];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	mcp_output_text(o, text, strlen(text));
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

bool mcp_output_takes(struct mcp_output *o, size_t base64_len)
{
	if (o->pictures >= MCP_PICTURES_MAX || base64_len > MCP_PICTURE_BYTES - o->picture_bytes)
		return false;
	o->pictures++;
	o->picture_bytes += base64_len;
	return true;
}

void mcp_output_file(struct mcp_output *o, const void *data, size_t len, const char *mime)
{
	json_object_begin(&o->a.j);
	json_member_str(&o->a.j, "type", "image");
	json_key(&o->a.j, "data");
	json_base64(&o->a.j, data, len);
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

/* Whether all of it is there, and no more than an answer may have. */
static bool close_output(const struct mcp_call *c, struct mcp_output *o, bool is_error)
{
	bool none = o->data.len == 0 && !o->data.err;

	json_array_end(&o->a.j);
	if (!none && json_finish(&o->s) < 0)
		return false;
	if (!none) {
		json_key(&o->a.j, "structuredContent");
		json_buf(&o->a.j, &o->data);
	}
	json_member_bool(&o->a.j, "isError", is_error);
	return mcp_answer_close(c, &o->a) == 0;
}

void mcp_output_end(struct mcp_call *c, struct mcp_output *o, bool is_error)
{
	bool whole = close_output(c, o, is_error);

	buf_free(&o->data);
	if (whole)
		mcp_answer_text(c, &o->a.buf);
	buf_free(&o->a.buf);
	if (!whole)
		mcp_output_fail(c, "result_too_large",
				"ask for less at once: a part, a smaller page, less output",
				"it was done, but its result does not fit into an answer");
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
	mcp_output_end(c, &o, true);
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
