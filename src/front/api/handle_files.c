/* SPDX-License-Identifier: Apache-2.0 */
/* handle_files.c - Files by name: what they are, moving, making and deleting. Lists are in
 * handle_files_list.c. */
#include <string.h>

#include "base/json.h"
#include "front/api/file_exchange.h"
#include "front/api/handlers.h"
#include "front/http/reply.h"
#include "front/http/request.h"
#include "front/http/serve.h"
#include "front/support/front.h"
#include "net/http.h"

#define ONE_MAX (256u << 10)

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

/* ---- one file ------------------------------------------------------------------------------ */

static void done_with_stat(struct file_call *c)
{
	_buf_ struct buf b = BUF_INIT(ONE_MAX);
	struct file_exchange *v = file_exchange_of(c);
	struct json j;

	if (c->refusal.status || !v->has_stat) {
		file_exchange_refuse(v);
		return;
	}
	struct http_exchange *x = file_exchange_part(v);

	json_init(&j, &b);
	json_object_begin(&j);
	file_json(&j, "path", text_of(c->path), &v->stat, text_of(v->target));
	json_object_end(&j);
	if (x)
		answer(x, c->end.flags & FILES_MADE ? 201 : 200, &j, &b);
	file_exchange_end(v);
}

static void done_empty(struct file_call *c)
{
	struct file_exchange *v = file_exchange_of(c);

	if (c->refusal.status) {
		file_exchange_refuse(v);
		return;
	}
	struct http_exchange *x = file_exchange_part(v);

	if (x)
		reply_empty(x, 204);
	file_exchange_end(v);
}

static const struct file_call_ops stat_ops = { .stat = file_exchange_keep, .done = done_with_stat };
static const struct file_call_ops empty_ops = { .done = done_empty };

static bool is_true(const json_t *fields, const char *name)
{
	return json_is_true(json_object_get(fields, name));
}

void handle_file_stat(struct front *f, struct http_exchange *x, const struct route_params *p)
{
	json_t *query = request_query(x, context_of(x)->route);
	struct file_exchange *v = query ? file_exchange_new(f, x, p, query, "path", NULL) : NULL;

	if (v) {
		v->call.q.flags = json_is_false(json_object_get(query, "follow")) ? FILES_NOFOLLOW :
										    0;
		file_exchange_run(v, FILES_STAT, &stat_ops);
	}
	json_decref(query);
}

void handle_file_delete(struct front *f, struct http_exchange *x, const struct route_params *p)
{
	json_t *query = request_query(x, context_of(x)->route);
	struct file_exchange *v = query ? file_exchange_new(f, x, p, query, "path", NULL) : NULL;

	if (v) {
		v->call.q.flags = is_true(query, "recursive") ? FILES_RECURSIVE : 0;
		file_exchange_run(v, FILES_DELETE, &empty_ops);
	}
	json_decref(query);
}

void handle_file_move(struct front *f, struct http_exchange *x, const struct route_params *p)
{
	json_t *body = request_json(x, context_of(x)->route);
	struct file_exchange *v = body ? file_exchange_new(f, x, p, body, "from", "to") : NULL;

	if (v) {
		v->call.q.flags = (is_true(body, "overwrite") ? FILES_OVERWRITE : 0u) |
				  (is_true(body, "parents") ? FILES_PARENTS : 0u);
		file_exchange_run(v, FILES_MOVE, &empty_ops);
	}
	json_decref(body);
}

void handle_file_mkdir(struct front *f, struct http_exchange *x, const struct route_params *p)
{
	json_t *body = request_json(x, context_of(x)->route);
	struct file_exchange *v = body ? file_exchange_new(f, x, p, body, "path", NULL) : NULL;

	if (v) {
		const char *mode = json_string_value(json_object_get(body, "mode"));

		v->call.q.flags = (is_true(body, "parents") ? FILES_PARENTS : 0u) |
				  (mode ? FILES_HAS_MODE : 0u);
		v->call.q.mode = mode ? file_mode(mode) : 0;
		file_exchange_run(v, FILES_MKDIR, &stat_ops);
	}
	json_decref(body);
}
