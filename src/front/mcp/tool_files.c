/* SPDX-License-Identifier: Apache-2.0 */
/* tool_files.c - Tools for the files of a session: read_file, write_file, list_files. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/utf8.h"
#include "front/files/artifact.h"
#include "front/mcp/file_job.h"
#include "front/mcp/listing.h"
#include "front/mcp/mcp.h"
#include "front/mcp/tool.h"
#include "front/operations/operations.h"
#include "front/support/daemon.h"
#include "mcp/uri.h"

#define READ_LIMIT 65536 /* bytes, unless told */
#define IMAGE_MAX (3u << 20)
#define WRITE_MAX (16u << 20)
#define LIST_BYTES (1u << 20) /* of a list whose length was asked for */

static const char *text_of(const json_t *args, const char *name)
{
	return json_string_value(json_object_get(args, name));
}

static struct file_job *make_job(struct mcp_call *c, const char *path, size_t max)
{
	struct refusal why;
	struct file_job *j = file_job_new(c, path, max, &why);

	if (!j)
		mcp_output_refuse(c, &why);
	return j;
}

/* ---- read_file ----------------------------------------------------------------------------- */

/* Where a part begins or ends in the middle of a character, what is there of it is left out. */
static bool as_text(const struct buf *b, bool cut_before, bool cut_after, size_t *begin,
		    size_t *len)
{
	const char *s = buf_str(b);
	size_t skip = 0, end = b->len;

	while (cut_before && skip < b->len && skip < 3 && ((unsigned char)s[skip] & 0xc0) == 0x80)
		skip++;
	for (size_t n = 0; cut_after && n < 3 && end > skip && !utf8_valid(s + skip, end - skip);
	     n++)
		end--;
	*begin = skip;
	*len = end - skip;
	return utf8_valid(s + skip, *len) && !memchr(s + skip, '\0', *len);
}

static bool is_image(const char *mime)
{
	return strcmp(mime, "image/png") == 0 || strcmp(mime, "image/jpeg") == 0 ||
	       strcmp(mime, "image/gif") == 0 || strcmp(mime, "image/webp") == 0;
}

/* One that was asked for whole, and is more than a block may have. */
static void put_large_image(struct file_job *j, struct mcp_output *o, const char *mime)
{
	const json_t *args = json_object_get(j->c->m.params, "arguments");
	_buf_ struct buf uri = BUF_INIT(4 * FILES_PATH_MAX);

	mcp_output_printf(
		o,
		"%s of %" PRIu64
		" bytes: more than the %u of an image block. Make a smaller one to look at, or "
		"read the bytes by parts with offset and limit.",
		mime, j->stat.size, IMAGE_MAX);
	mcp_uri_file(&uri, text_of(args, "session_id"), j->call.path);
	mcp_output_link(o, buf_str(&uri), j->call.path, mime, j->stat.size);
}

static void read_head(const struct file_job *j, const char *mime, uint64_t bytes, struct json *s)
{
	json_object_begin(s);
	json_member_str(s, "path", j->call.path);
	json_member_str(s, "mime_type", mime);
	json_member_uint(s, "size", j->stat.size);
	json_member_uint(s, "offset", j->call.q.offset);
	json_member_uint(s, "bytes", bytes);
	json_member_bool(s, "truncated", j->call.q.offset + bytes < j->stat.size);
	if (j->call.q.offset + bytes < j->stat.size)
		json_member_uint(s, "next_offset", j->call.q.offset + bytes);
}

static void put_content(struct file_job *j, struct mcp_output *o, const char *mime)
{
	uint64_t offset = j->call.q.offset, end = offset + j->data.len;
	size_t begin, len;

	if (as_text(&j->data, offset > 0, end < j->stat.size, &begin, &len)) {
		mcp_output_text(o, buf_str(&j->data) + begin, len);
		json_key(&o->s, "content");
		(void)json_strn(&o->s, buf_str(&j->data) + begin, len);
	} else {
		mcp_output_printf(o, "%s: %zu bytes, not text; content_base64 has them", mime,
				  j->data.len);
		json_key(&o->s, "content_base64");
		json_base64(&o->s, buf_str(&j->data), j->data.len);
	}
	if (end < j->stat.size)
		mcp_output_printf(o,
				  "[bytes %" PRIu64 " to %" PRIu64 " of %" PRIu64
				  "; go on with offset %" PRIu64 "]",
				  offset, end, j->stat.size, end);
}

static void read_done(struct file_job *j)
{
	const char *mime = mime_of(j->call.path);
	bool all = j->call.q.offset == 0 && j->data.len == j->stat.size;
	bool large = j->call.q.length == IMAGE_MAX && !all;
	struct mcp_output o;

	if (j->call.refusal.kind) {
		mcp_output_refuse(j->c, &j->call.refusal);
		return;
	}
	mcp_output_begin(j->c, &o);
	read_head(j, mime, large ? 0 : j->data.len, &o.s);
	if (large)
		put_large_image(j, &o, mime);
	else if (is_image(mime) && all)
		mcp_output_file(&o, buf_str(&j->data), j->data.len, mime);
	else
		put_content(j, &o, mime);
	json_object_end(&o.s);
	mcp_output_end(j->c, &o, false);
}

static void read_file(struct mcp_call *c, json_t *args)
{
	const char *path = text_of(args, "path");
	struct sandbox *s = mcp_find_sandbox(c, args);
	bool whole = !json_object_get(args, "offset") && !json_object_get(args, "limit") &&
		     is_image(mime_of(path));
	uint64_t limit = whole ? IMAGE_MAX : mcp_arg_number(args, "limit", READ_LIMIT);
	struct file_job *j = s ? make_job(c, path, limit) : NULL;

	if (!j)
		return;
	j->done = read_done;
	j->call.q.offset = mcp_arg_number(args, "offset", 0);
	j->call.q.length = limit;
	file_job_run(j, FILES_READ, s);
}

/* ---- write_file ---------------------------------------------------------------------------- */

static void write_done(struct file_job *j)
{
	bool made = j->call.end.flags & FILES_MADE;
	struct mcp_output o;

	if (j->call.refusal.kind) {
		mcp_output_refuse(j->c, &j->call.refusal);
		return;
	}
	mcp_output_begin(j->c, &o);
	json_object_begin(&o.s);
	json_member_str(&o.s, "path", j->call.path);
	json_member_uint(&o.s, "size", j->stat.size);
	json_member_bool(&o.s, "created", made);
	json_object_end(&o.s);
	mcp_output_printf(&o, "%s %s, %" PRIu64 " bytes", made ? "made" : "replaced", j->call.path,
			  j->stat.size);
	mcp_output_end(j->c, &o, false);
}

static void write_file(struct mcp_call *c, json_t *args)
{
	const json_t *text = json_object_get(args, "content"),
		     *coded = json_object_get(args, "content_base64");
	struct sandbox *s;
	struct file_job *j;

	if (!text == !coded) {
		mcp_output_fail(c, "invalid_value",
				"give text as content, or bytes as content_base64",
				"content: exactly one of content and content_base64 is needed");
		return;
	}
	s = mcp_obtain_sandbox(c, args);
	j = s ? make_job(c, text_of(args, "path"), WRITE_MAX) : NULL;
	if (!j)
		return;
	if (text)
		(void)buf_append(&j->data, json_string_value(text), json_string_length(text));
	else if (!base64_decode(json_string_value(coded), json_string_length(coded), &j->data))
		j->data.err = -1;
	if (j->data.err) {
		buf_free(&j->data);
		free(j);
		mcp_output_fail(c, "invalid_value", NULL, "%s",
				coded ? "content_base64: it is not base64, or too large" :
					"content: it is too large");
		return;
	}
	j->done = write_done;
	j->call.q.flags = FILES_PARENTS;
	j->call.q.length = j->data.len;
	file_job_run(j, FILES_WRITE, s);
}

/* ---- list_files ---------------------------------------------------------------------------- */

/* Without a limit of its own a list is as long as output may be. */
static void list_done(struct file_job *j)
{
	_buf_ struct buf text = BUF_INIT(MCP_ANSWER_MAX);
	struct listing *l = j->arg;
	struct mcp_output o;

	if (j->call.refusal.kind) {
		mcp_output_refuse(j->c, &j->call.refusal);
		return;
	}
	l->truncated |= (j->call.end.flags & FILES_CUT) != 0;
	mcp_output_begin(j->c, &o);
	listing_write(l, j->call.path, l->max ? LIST_BYTES : j->c->mcp->daemon->config.max_output,
		      &o.s, &text);
	mcp_output_text(&o, buf_str(&text), text.len);
	mcp_output_end(j->c, &o, false);
}

static void list_files(struct mcp_call *c, json_t *args)
{
	const char *path = text_of(args, "path");
	struct sandbox *s = mcp_find_sandbox(c, args);
	struct file_job *j = s ? make_job(c, path ? path : "/workspace", 0) : NULL;

	if (!j)
		return;
	j->done = list_done;
	j->entry = listing_entry;
	j->arg = listing_new(text_of(args, "cursor"), mcp_arg_number(args, "limit", 0));
	j->free_arg = listing_free;
	j->call.q.limit = LISTING_LOOKED_AT;
	if (json_is_true(json_object_get(args, "recursive"))) {
		j->call.q.flags = FILES_RECURSIVE;
		j->call.q.depth = FILES_DEPTH_MAX;
	}
	file_job_run(j, FILES_LIST, s);
}

/* ---- the table ----------------------------------------------------------------------------- */

static const char read_schema[] =
	"{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\"},"
	"\"mime_type\":{\"type\":\"string\"},\"size\":{\"type\":\"integer\"},\"offset\":{\"type\":\"integer\"},"
	"\"bytes\":{\"type\":\"integer\"},\"truncated\":{\"type\":\"boolean\"},"
	"\"next_offset\":{\"type\":\"integer\"},\"content\":{\"type\":\"string\"},\"content_base64\":{\"type\":\"string\"}},"
	"\"required\":[\"path\",\"mime_type\",\"size\",\"offset\",\"bytes\",\"truncated\"]}";

static const char write_schema[] =
	"{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\"},\"size\":{\"type\":\"integer\"},"
	"\"created\":{\"type\":\"boolean\"}},\"required\":[\"path\",\"size\",\"created\"]}";

const struct mcp_tool mcp_tools_files[] = {
	{ &operation_read_file, read_file, TOOL_READ_ONLY | TOOL_IDEMPOTENT, TOOL_ALWAYS,
	  read_schema },
	{ &operation_write_file, write_file, TOOL_DESTRUCTIVE | TOOL_IDEMPOTENT, TOOL_ALWAYS,
	  write_schema },
	{ &operation_list_files, list_files, TOOL_READ_ONLY | TOOL_IDEMPOTENT, TOOL_ALWAYS,
	  listing_schema },
	{ 0 },
};
