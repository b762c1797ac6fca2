/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handle_files.c - Files by name: stat, move, make a directory, delete, and watch for changes.
 *
 * Lists are in handle_files_list.c, content is in handle_files_content.c. A watch is a stream of
 * Server-Sent Events that lasts until the client, the sandbox or the watched directory is gone.
 */
#include "base/json.h"
#include "front/api/file_exchange.h"
#include "front/api/handlers.h"
#include "front/http/reply.h"
#include "front/support/refusal.h"
#include "net/http.h"

#define ONE_MAX (256u << 10)

/* ---- one file ------------------------------------------------------------------------------ */

static void done_with_stat(struct file_call *c)
{
	_buf_ struct buf b = BUF_INIT(ONE_MAX);
	struct file_exchange *v = file_exchange_of(c);
	struct json j;

	if (c->refusal.kind || !v->has_stat) {
		file_exchange_refuse(v);
		return;
	}
	struct http_exchange *x = file_exchange_part(v);

	json_init(&j, &b);
	json_object_begin(&j);
	file_json(&j, "path", file_text(c->path), &v->stat, file_text(v->target));
	json_object_end(&j);
	if (x)
		reply_written(x, c->end.flags & FILES_MADE ? 201 : 200, &j);
	file_exchange_end(v);
}

static void done_empty(struct file_call *c)
{
	struct file_exchange *v = file_exchange_of(c);
	struct http_exchange *x = file_exchange_done(v);

	if (!x)
		return;
	reply_empty(x, 204);
	file_exchange_end(v);
}

static const struct file_call_ops stat_ops = { .stat = file_exchange_keep, .done = done_with_stat };
static const struct file_call_ops empty_ops = { .done = done_empty };

void handle_file_stat(struct sandbox *s, struct http_exchange *x)
{
	struct file_exchange *v = file_exchange_new(s, x, "path", NULL);

	if (!v)
		return;
	if (json_is_false(json_object_get(v->fields, "follow")))
		v->call.q.flags = FILES_NOFOLLOW;
	file_exchange_run(v, FILES_STAT, &stat_ops);
}

void handle_file_delete(struct sandbox *s, struct http_exchange *x)
{
	struct file_exchange *v = file_exchange_new(s, x, "path", NULL);

	if (!v)
		return;
	v->call.q.flags = file_exchange_flag(v, "recursive", FILES_RECURSIVE);
	file_exchange_run(v, FILES_DELETE, &empty_ops);
}

void handle_file_move(struct sandbox *s, struct http_exchange *x)
{
	struct file_exchange *v = file_exchange_new(s, x, "from", "to");

	if (!v)
		return;
	v->call.q.flags = file_exchange_flag(v, "overwrite", FILES_OVERWRITE) |
			  file_exchange_flag(v, "parents", FILES_PARENTS);
	file_exchange_run(v, FILES_MOVE, &empty_ops);
}

void handle_file_mkdir(struct sandbox *s, struct http_exchange *x)
{
	struct file_exchange *v = file_exchange_new(s, x, "path", NULL);

	if (!v)
		return;
	v->call.q.flags = file_exchange_flag(v, "parents", FILES_PARENTS);
	file_exchange_take_mode(v);
	file_exchange_run(v, FILES_MKDIR, &stat_ops);
}

/* ---- changes ------------------------------------------------------------------------------- */

/* The worker watches from now on. */
static void on_watched(struct file_call *c, const struct files_stat *st, struct files_text name,
		       struct files_text target)
{
	struct file_exchange *v = file_exchange_of(c);

	(void)st;
	(void)name;
	(void)target;
	if (!v->x || v->streaming)
		return;
	file_exchange_stream(v, NULL);
	(void)sse_comment(v->x, "watching");
}

static void on_event(struct file_call *c, const struct files_event *ev, struct files_text name,
		     struct files_text from)
{
	static const char *const kinds[] = {
		[FILES_E_CREATED] = "created",   [FILES_E_MODIFIED] = "modified",
		[FILES_E_DELETED] = "deleted",   [FILES_E_MOVED] = "moved",
		[FILES_E_OVERFLOW] = "overflow",
	};
	_buf_ struct buf b = BUF_INIT(ONE_MAX);
	struct file_exchange *v = file_exchange_of(c);
	struct json j;

	if (!v->x || !v->streaming)
		return;
	json_init(&j, &b);
	json_object_begin(&j);
	if (ev->kind != FILES_E_OVERFLOW) {
		file_json_text(&j, "path", name);
		json_member_bool(&j, "is_dir", ev->is_dir);
	}
	if (ev->kind == FILES_E_MOVED)
		file_json_text(&j, "from", from);
	json_object_end(&j);
	int r = json_finish(&j);

	if (r == 0)
		(void)sse_event(v->x, NULL, kinds[ev->kind], buf_str(&b), b.len);
	else
		(void)http_stream_lost(v->x, r);
}

/* The watched directory is gone, or the sandbox is. */
static void on_done(struct file_call *c)
{
	_buf_ struct buf b = BUF_INIT(ONE_MAX);
	struct file_exchange *v = file_exchange_of(c);

	if (!v->streaming) {
		file_exchange_refuse(v);
		return;
	}
	struct http_exchange *x = file_exchange_part(v);

	if (x && c->refusal.kind) {
		refusal_json(&c->refusal, &b);
		(void)sse_event(x, NULL, "error", buf_str(&b), b.len);
	}
	if (x)
		http_stream_end(x);
	file_exchange_end(v);
}

static const struct file_call_ops watch_ops = {
	.stat = on_watched,
	.event = on_event,
	.congested = file_exchange_congested,
	.done = on_done,
};

void handle_file_watch(struct sandbox *s, struct http_exchange *x)
{
	struct file_exchange *v = file_exchange_new(s, x, "path", NULL);

	if (!v)
		return;
	v->call.q.flags = file_exchange_flag(v, "recursive", FILES_RECURSIVE);
	v->call.patient = true;
	file_exchange_run(v, FILES_WATCH, &watch_ops);
}
