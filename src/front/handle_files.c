/* SPDX-License-Identifier: Apache-2.0 */
/* handle_files.c - Files by name: what they are, lists of them, moving, making and deleting. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "front/file_visit.h"
#include "front/front.h"
#include "front/handlers.h"
#include "front/reply.h"
#include "front/request.h"
#include "front/serve.h"
#include "net/http.h"

#define ONE_MAX (256u << 10)
#define LIST_MAX (16u << 20) /* bytes of an answer */
#define LIST_LIMIT 1000u     /* entries, unless told */

static void answer(struct http_exchange *x, int status, struct json *j, struct buf *b)
{
	if (json_finish(j) < 0)
		reply_error(x, 500, "internal", NULL, NULL, "the answer could not be written");
	else
		reply_json(x, status, b);
}

static struct files_text text_of(const char *s)
{
	return (struct files_text){ .data = s ? s : "", .len = s ? strlen(s) : 0 };
}

/* ---- one file ------------------------------------------------------------------------------------------ */

static void done_with_stat(struct file_call *c)
{
	_buf_ struct buf b = BUF_INIT(ONE_MAX);
	struct file_visit *v = file_visit_of(c);
	struct json j;

	if (c->refusal.status || !v->has_stat) {
		file_visit_refuse(v);
		return;
	}
	struct http_exchange *x = file_visit_part(v);

	json_init(&j, &b);
	json_object_begin(&j);
	file_json(&j, "path", text_of(c->path), &v->stat, text_of(v->target));
	json_object_end(&j);
	if (x)
		answer(x, c->end.flags & FILES_MADE ? 201 : 200, &j, &b);
	file_visit_end(v);
}

static void done_empty(struct file_call *c)
{
	struct file_visit *v = file_visit_of(c);

	if (c->refusal.status) {
		file_visit_refuse(v);
		return;
	}
	struct http_exchange *x = file_visit_part(v);

	if (x)
		reply_empty(x, 204);
	file_visit_end(v);
}

static const struct file_call_ops stat_ops = { .stat = file_visit_keep, .done = done_with_stat };
static const struct file_call_ops empty_ops = { .done = done_empty };

static bool is_true(const json_t *fields, const char *name)
{
	return json_is_true(json_object_get(fields, name));
}

void handle_file_stat(struct front *f, struct http_exchange *x, const struct route_params *p)
{
	json_t *query = request_query(x, visit_of(x)->route);
	struct file_visit *v = query ? file_visit_new(f, x, p, query, "path", NULL) : NULL;

	if (v) {
		v->call.q.flags = json_is_false(json_object_get(query, "follow")) ? FILES_NOFOLLOW :
										    0;
		file_visit_run(v, FILES_STAT, &stat_ops);
	}
	json_decref(query);
}

void handle_file_delete(struct front *f, struct http_exchange *x, const struct route_params *p)
{
	json_t *query = request_query(x, visit_of(x)->route);
	struct file_visit *v = query ? file_visit_new(f, x, p, query, "path", NULL) : NULL;

	if (v) {
		v->call.q.flags = is_true(query, "recursive") ? FILES_RECURSIVE : 0;
		file_visit_run(v, FILES_DELETE, &empty_ops);
	}
	json_decref(query);
}

void handle_file_move(struct front *f, struct http_exchange *x, const struct route_params *p)
{
	json_t *body = request_json(x, visit_of(x)->route);
	struct file_visit *v = body ? file_visit_new(f, x, p, body, "from", "to") : NULL;

	if (v) {
		v->call.q.flags = (is_true(body, "overwrite") ? FILES_OVERWRITE : 0u) |
				  (is_true(body, "parents") ? FILES_PARENTS : 0u);
		file_visit_run(v, FILES_MOVE, &empty_ops);
	}
	json_decref(body);
}

void handle_file_mkdir(struct front *f, struct http_exchange *x, const struct route_params *p)
{
	json_t *body = request_json(x, visit_of(x)->route);
	struct file_visit *v = body ? file_visit_new(f, x, p, body, "path", NULL) : NULL;

	if (v) {
		const char *mode = json_string_value(json_object_get(body, "mode"));

		v->call.q.flags = (is_true(body, "parents") ? FILES_PARENTS : 0u) |
				  (mode ? FILES_HAS_MODE : 0u);
		v->call.q.mode = mode ? file_mode(mode) : 0;
		file_visit_run(v, FILES_MKDIR, &stat_ops);
	}
	json_decref(body);
}

/* ---- lists ----------------------------------------------------------------------------------------------- */

static bool grow(struct file_visit *v)
{
	if (v->n_entries < v->cap_entries)
		return true;
	size_t cap = v->cap_entries ? v->cap_entries * 2 : 64;
	void *more = realloc(v->entries, cap * sizeof(struct file_entry *));

	if (!more)
		return false;
	v->entries = more;
	v->cap_entries = cap;
	return true;
}

/* Kept as text, so that they can be sorted, in no more memory than the answer may have. */
static void on_entry(struct file_call *c, const struct files_stat *st, struct files_text name,
		     struct files_text target)
{
	_buf_ struct buf b = BUF_INIT(ONE_MAX);
	struct file_visit *v = file_visit_of(c);
	struct json j;

	if (v->truncated)
		return;
	json_init(&j, &b);
	json_object_begin(&j);
	file_json(&j, "name", name, st, target);
	json_object_end(&j);
	if (json_finish(&j) < 0 || v->entries_bytes + b.len + 2 > LIST_MAX - ONE_MAX || !grow(v)) {
		v->truncated = true;
		return;
	}
	struct file_entry *e = malloc(sizeof(*e) + name.len + b.len);

	if (!e) {
		v->truncated = true;
		return;
	}
	e->name_len = name.len;
	e->json_len = b.len;
	memcpy(e->text, name.data, name.len);
	memcpy(e->text + name.len, buf_str(&b), b.len);
	v->entries[v->n_entries++] = e;
	v->entries_bytes += b.len + 2;
}

static int by_name(const void *a, const void *b)
{
	const struct file_entry *x = *(struct file_entry *const *)a;
	const struct file_entry *y = *(struct file_entry *const *)b;
	size_t n = x->name_len < y->name_len ? x->name_len : y->name_len;
	int r = memcmp(x->text, y->text, n);

	return r ? r : (x->name_len > y->name_len) - (x->name_len < y->name_len);
}

static void done_list(struct file_call *c)
{
	_buf_ struct buf b = BUF_INIT(LIST_MAX);
	struct file_visit *v = file_visit_of(c);
	struct json j;

	if (c->refusal.status) {
		file_visit_refuse(v);
		return;
	}
	struct http_exchange *x = file_visit_part(v);

	if (v->n_entries > 0)
		qsort(v->entries, v->n_entries, sizeof(struct file_entry *), by_name);
	json_init(&j, &b);
	json_object_begin(&j);
	json_member_str(&j, "path", c->path);
	json_key(&j, "entries");
	json_array_begin(&j);
	for (size_t i = 0; i < v->n_entries; i++)
		json_raw(&j, v->entries[i]->text + v->entries[i]->name_len,
			 v->entries[i]->json_len);
	json_array_end(&j);
	json_member_bool(&j, "truncated", v->truncated || c->end.flags & FILES_CUT);
	json_object_end(&j);
	if (x)
		answer(x, 200, &j, &b);
	file_visit_end(v);
}

static const struct file_call_ops list_ops = { .stat = on_entry, .done = done_list };

void handle_file_list(struct front *f, struct http_exchange *x, const struct route_params *p)
{
	json_t *query = request_query(x, visit_of(x)->route);
	struct file_visit *v = query ? file_visit_new(f, x, p, query, "path", NULL) : NULL;

	if (v) {
		const json_t *limit = json_object_get(query, "limit");
		const json_t *depth = json_object_get(query, "depth");

		v->call.q.flags = is_true(query, "recursive") ? FILES_RECURSIVE : 0;
		v->call.q.limit = limit ? (uint64_t)json_integer_value(limit) : LIST_LIMIT;
		v->call.q.depth = depth ? (uint32_t)json_integer_value(depth) - 1 : FILES_DEPTH_MAX;
		file_visit_run(v, FILES_LIST, &list_ops);
	}
	json_decref(query);
}
