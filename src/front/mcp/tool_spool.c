/* SPDX-License-Identifier: Apache-2.0 */
/* tool_spool.c - Long output by parts, and the tool that reads the output that the result of an
 * execution left out. */
#include "front/mcp/tool_spool.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "front/mcp/tool.h"
#include "front/operations/operations.h"
#include "front/output/spool.h"
#include "front/sandbox/record.h"
#include "front/sandbox/sandbox.h"

bool mcp_is_stderr(const json_t *args)
{
	const char *stream = json_string_value(json_object_get(args, "stream"));

	return stream && strcmp(stream, "stderr") == 0;
}

/* A character that the limit cut comes with the next part. */
static size_t whole(const char *s, size_t n)
{
	for (size_t cut = 0; cut < 4 && cut < n; cut++)
		if (utf8_valid(s + n - cut - 1, 1) ||
		    ((unsigned char)s[n - cut - 1] & 0xc0) == 0xc0)
			return utf8_valid(s + n - cut - 1, cut + 1) ? n : n - cut - 1;
	return n;
}

void mcp_output_spool(struct mcp_call *c, const struct spool *s, const json_t *args, bool ended,
		      void (*more)(struct json *j, const void *arg), const void *arg)
{
	_buf_ struct buf part = BUF_INIT(SPOOL_PART_MAX);
	uint64_t offset = mcp_arg_number(args, "offset", 0),
		 limit = mcp_arg_number(args, "limit", SPOOL_PART);
	char *to = buf_reserve(&part, limit);
	int64_t n = to ? spool_read(s, offset, to, limit) : -1;
	struct mcp_output o;

	if (n < 0) {
		mcp_output_fail(c, "spool_failed", NULL, "what was written could not be read back");
		return;
	}
	size_t len = offset + (uint64_t)n < s->kept ? whole(to, (size_t)n) : (size_t)n;
	uint64_t end = offset + len;

	mcp_output_begin(c, &o);
	mcp_output_text(&o, len ? to : "(nothing here)", len ? len : strlen("(nothing here)"));
	if (end < s->kept)
		mcp_output_printf(&o,
				  "[bytes %" PRIu64 " to %" PRIu64 " of %" PRIu64
				  "; go on with offset %" PRIu64 "]",
				  offset, end, s->bytes, end);
	json_object_begin(&o.s);
	json_member_uint(&o.s, "offset", offset);
	json_member_uint(&o.s, "next_offset", end);
	json_member_uint(&o.s, "bytes_written", s->bytes);
	json_member_uint(&o.s, "bytes_kept", s->kept);
	json_member_bool(&o.s, "complete", ended && end >= s->kept);
	json_key(&o.s, "content");
	(void)json_strn(&o.s, to, len);
	if (more)
		more(&o.s, arg);
	json_object_end(&o.s);
	mcp_output_end(c, &o, false);
}

/* ---- read_output --------------------------------------------------------------------------- */

static void read_output(struct mcp_call *c, json_t *args)
{
	const char *id = json_string_value(json_object_get(args, "execution_id"));
	struct sandbox *s = mcp_find_sandbox(c, args);
	const struct record *r = s ? records_find(&s->records, id) : NULL;

	if (s && !r)
		mcp_output_fail(
			c, "no_such_execution",
			"take execution_id from the result of execute_code or run_shell",
			"there is no such execution in this session, or it is not kept any more");
	else if (r)
		mcp_output_spool(c, mcp_is_stderr(args) ? &r->err : &r->out, args, r->ended_ms != 0,
				 NULL, NULL);
}

const struct mcp_tool mcp_tools_output[] = {
	{ &operation_read_output, read_output, TOOL_READ_ONLY | TOOL_IDEMPOTENT, TOOL_ALWAYS,
	  "{\"type\":\"object\",\"properties\":{\"offset\":{\"type\":\"integer\"},"
	  "\"next_offset\":{\"type\":\"integer\"},\"bytes_written\":{\"type\":\"integer\"},"
	  "\"bytes_kept\":{\"type\":\"integer\"},\"complete\":{\"type\":\"boolean\"},"
	  "\"content\":{\"type\":\"string\"}},"
	  "\"required\":[\"offset\",\"next_offset\",\"bytes_written\",\"complete\"]}" },
	{ 0 },
};
