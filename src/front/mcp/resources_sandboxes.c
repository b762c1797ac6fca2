/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resources_sandboxes.c - Files and output of sandboxes as resources.
 *
 * The list has the caller's sessions, as directories. A client finds the files in them by reading
 * the directories, or by the links in results of tools. Resources of another owner do not exist.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "front/files/artifact.h"
#include "front/mcp/call.h"
#include "front/mcp/file_job.h"
#include "front/mcp/listing.h"
#include "front/mcp/mcp.h"
#include "front/mcp/resources.h"
#include "front/sandbox/record.h"
#include "front/sandbox/sandbox.h"
#include "mcp/uri.h"

#define READ_MAX (16u << 20)
#define LISTING_BYTES (1u << 20)

/* ---- lists --------------------------------------------------------------------------------- */

static void list_sessions(struct mcp_call *c, struct json *j, struct mcp_page *page)
{
	size_t n;
	struct sandbox **all = sandboxes_of(c->mcp->sandboxes, c->owner, NULL, &n);

	for (size_t i = 0; i < n; i++) {
		_buf_ struct buf uri = BUF_INIT(256);
		char title[128];

		if (all[i]->state != SANDBOX_RUNNING || !mcp_page_takes(page))
			continue;
		mcp_uri_file(&uri, all[i]->name, "");
		(void)snprintf(title, sizeof(title), "Files of session %s", all[i]->name);
		json_object_begin(j);
		json_member_str(j, "uri", buf_str(&uri));
		json_member_str(j, "name", all[i]->name);
		json_member_str(j, "title", title);
		json_member_str(j, "mimeType", "application/json");
		json_object_end(j);
	}
	free(all);
}

/* For the variable {id}. */
static size_t complete_session(struct mcp_call *c, const char *arg, const char *value,
			       struct json *j, size_t max)
{
	size_t n, found = 0;
	struct sandbox **all = sandboxes_of(c->mcp->sandboxes, c->owner, NULL, &n);

	for (size_t i = 0; i < n && strcmp(arg, "id") == 0; i++)
		if (all[i]->state == SANDBOX_RUNNING &&
		    strncmp(all[i]->name, value, strlen(value)) == 0 && found++ < max)
			(void)json_str(j, all[i]->name);
	free(all);
	return found;
}

/* ---- read ---------------------------------------------------------------------------------- */

static void answer(struct mcp_call *c, const char *uri, const char *mime, const char *data,
		   size_t len)
{
	if (utf8_valid(data, len) && !memchr(data, '\0', len))
		mcp_resource_text(c, uri, mime, data, len, 0);
	else
		mcp_resource_blob(c, uri, mime, data, len, 0);
}

static void list_done(struct file_job *j)
{
	_buf_ struct buf b = BUF_INIT(2 * LISTING_BYTES);
	const char *uri = json_string_value(json_object_get(j->c->m.params, "uri"));
	struct listing *l = j->arg;
	struct json out;

	if (j->call.refusal.kind) {
		mcp_resource_missing(j->c, uri);
		return;
	}
	l->truncated |= (j->call.end.flags & FILES_CUT) != 0;
	json_init(&out, &b);
	listing_write(l, j->call.path, LISTING_BYTES, &out, NULL);
	if (json_finish(&out) < 0)
		mcp_fail(j->c, MCP_INTERNAL, "the list could not be written: use list_files");
	else
		answer(j->c, uri, "application/json", buf_str(&b), b.len);
}

static void read_directory(struct mcp_call *c, struct sandbox *s, const char *path)
{
	struct refusal why;
	struct file_job *j = file_job_new(c, path[0] ? path : "/workspace", 0, &why);

	if (!j) {
		mcp_fail(c, MCP_INTERNAL, "%s", why.message);
		return;
	}
	j->done = list_done;
	j->entry = listing_entry;
	j->arg = listing_new(NULL, LISTING_MAX);
	j->free_arg = listing_free;
	j->call.q.limit = LISTING_LOOKED_AT;
	file_job_run(j, FILES_LIST, s);
}

static void read_done(struct file_job *j)
{
	const char *uri = json_string_value(json_object_get(j->c->m.params, "uri"));

	if (j->call.refusal.kind)
		mcp_resource_missing(j->c, uri);
	else if (j->stat.size > j->data.len)
		mcp_fail(
			j->c, MCP_INVALID_PARAMS,
			"it has %llu bytes, more than a resource may have: read it by parts with read_file",
			(unsigned long long)j->stat.size);
	else
		answer(j->c, uri, mime_of(j->call.path), buf_str(&j->data), j->data.len);
}

static void read_file(struct mcp_call *c, struct sandbox *s, const char *path)
{
	struct refusal why;
	struct file_job *j = file_job_new(c, path, READ_MAX, &why);

	if (!j) {
		mcp_fail(c, MCP_INTERNAL, "%s", why.message);
		return;
	}
	j->done = read_done;
	j->call.q.length = READ_MAX;
	file_job_run(j, FILES_READ, s);
}

static void read_output(struct mcp_call *c, const struct sandbox *s, const struct mcp_uri *at,
			const char *uri)
{
	const struct record *r = records_find(&s->records, at->path);
	const struct spool *o = r ? (at->kind == MCP_URI_STDERR ? &r->err : &r->out) : NULL;
	_buf_ struct buf b = BUF_INIT(READ_MAX);
	size_t len = o ? (size_t)(o->kept < READ_MAX ? o->kept : READ_MAX) : 0;
	char *to = buf_reserve(&b, len + 1);
	int64_t n = o && to ? spool_read(o, 0, to, len) : -1;

	if (n < 0)
		mcp_resource_missing(c, uri);
	else
		answer(c, uri, "text/plain", to, (size_t)n);
}

static void read_sandbox(struct mcp_call *c, const char *uri)
{
	struct mcp_uri at;
	struct sandbox *s =
		mcp_uri_parse(uri, &at) ? sandbox_find(c->mcp->sandboxes, c->owner, at.name) : NULL;

	if (!s)
		mcp_resource_missing(c, uri);
	else if (at.kind != MCP_URI_FILE)
		read_output(c, s, &at, uri);
	else if (!at.path[0] || at.path[strlen(at.path) - 1] == '/')
		read_directory(c, s, at.path);
	else
		read_file(c, s, at.path);
}

/* ---- the table ----------------------------------------------------------------------------- */

static bool is_file(const char *uri)
{
	struct mcp_uri at;

	return mcp_uri_parse(uri, &at) && at.kind == MCP_URI_FILE;
}

static bool is_output(const char *uri)
{
	struct mcp_uri at;

	return mcp_uri_parse(uri, &at) && at.kind != MCP_URI_FILE;
}

const struct mcp_resource mcp_resources_sandboxes[] = {
	{ .uri = "sandbox://{id}/files/{+path}",
	  .name = "file",
	  .title = "File of a session",
	  .description =
		  "A file by its path below /workspace; a directory, with a slash at its end, is a list.",
	  .match = is_file,
	  .list = list_sessions,
	  .watched = true,
	  .read = read_sandbox,
	  .complete = complete_session },
	{ .uri = "sandbox://{id}/executions/{execution_id}/{stream}",
	  .name = "output",
	  .title = "Output of an execution",
	  .description = "All that an execution wrote to stdout or stderr, for 15 minutes.",
	  .mime = "text/plain",
	  .match = is_output,
	  .read = read_sandbox,
	  .complete = complete_session },
	{ 0 },
};
