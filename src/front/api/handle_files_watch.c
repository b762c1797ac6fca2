/* SPDX-License-Identifier: Apache-2.0 */
/* handle_files_watch.c - Changes below a directory, as Server-Sent Events, until somebody has
 * enough. */
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "front/api/file_exchange.h"
#include "front/api/handlers.h"
#include "front/http/reply.h"
#include "front/http/request.h"
#include "front/http/serve.h"
#include "front/support/front.h"
#include "front/support/refusal.h"
#include "net/http.h"

#define EVENT_MAX (256u << 10)
#define ALIVE_NS (15 * CLOCK_NS_PER_S)

/* So that nobody on the way takes the connection for dead. */
static void on_alive(struct timer *t)
{
	struct file_exchange *v = t->arg;

	if (v->x && !http_stream_congested(v->x))
		(void)sse_comment(v->x, "alive");
	timer_set(&v->f->loop, t, v->f->loop.now_ns + ALIVE_NS);
}

static void drained(struct http_exchange *x)
{
	struct file_exchange *v = context_of(x)->work;

	if (v)
		file_call_resume(&v->call);
}

/* It is watched from now on. */
static void on_watched(struct file_call *c, const struct files_stat *st, struct files_text name,
		       struct files_text target)
{
	struct file_exchange *v = file_exchange_of(c);

	(void)st;
	(void)name;
	(void)target;
	if (!v->x || v->streaming)
		return;
	v->streaming = true;
	reply_headers(v->x);
	http_stream(v->x, 200, "text/event-stream; charset=utf-8");
	http_stream_on_drain(v->x, drained);
	(void)sse_comment(v->x, "watching");
	v->alive.fn = on_alive;
	v->alive.arg = v;
	timer_set(&v->f->loop, &v->alive, v->f->loop.now_ns + ALIVE_NS);
}

static void put_path(struct json *j, const char *key, const char *other, struct files_text t)
{
	json_key(j, key);
	if (json_strn(j, t.data, t.len)) {
		json_key(j, other);
		json_base64(j, t.data, t.len);
	}
}

static void on_event(struct file_call *c, const struct files_event *ev, struct files_text name,
		     struct files_text from)
{
	static const char *const kinds[] = {
		[FILES_E_CREATED] = "created",   [FILES_E_MODIFIED] = "modified",
		[FILES_E_DELETED] = "deleted",   [FILES_E_MOVED] = "moved",
		[FILES_E_OVERFLOW] = "overflow",
	};
	_buf_ struct buf b = BUF_INIT(EVENT_MAX);
	struct file_exchange *v = file_exchange_of(c);
	struct json j;

	if (!v->x || !v->streaming)
		return;
	json_init(&j, &b);
	json_object_begin(&j);
	if (ev->kind != FILES_E_OVERFLOW) {
		put_path(&j, "path", "path_base64", name);
		json_member_bool(&j, "is_dir", ev->is_dir);
	}
	if (ev->kind == FILES_E_MOVED)
		put_path(&j, "from", "from_base64", from);
	json_object_end(&j);
	int r = json_finish(&j);

	if (r == 0)
		(void)sse_event(v->x, NULL, kinds[ev->kind], buf_str(&b), b.len);
	else
		(void)http_stream_lost(v->x, r);
}

static bool is_congested(struct file_call *c)
{
	struct file_exchange *v = file_exchange_of(c);

	return v->x && v->streaming && http_stream_congested(v->x);
}

/* What is watched is gone, or the sandbox is. */
static void on_done(struct file_call *c)
{
	_buf_ struct buf b = BUF_INIT(EVENT_MAX);
	struct file_exchange *v = file_exchange_of(c);

	if (!v->streaming) {
		file_exchange_refuse(v);
		return;
	}
	struct http_exchange *x = file_exchange_part(v);

	if (x && c->refusal.status) {
		error_json(&b, c->refusal.code, c->refusal.message, NULL, NULL);
		(void)sse_event(x, NULL, "error", buf_str(&b), b.len);
	}
	if (x)
		http_stream_end(x);
	file_exchange_end(v);
}

static const struct file_call_ops watch_ops = {
	.stat = on_watched,
	.event = on_event,
	.congested = is_congested,
	.done = on_done,
};

void handle_file_watch(struct front *f, struct http_exchange *x, const struct route_params *p)
{
	json_t *query = request_query(x, context_of(x)->route);
	struct file_exchange *v = query ? file_exchange_new(f, x, p, query, "path", NULL) : NULL;

	if (v) {
		v->call.q.flags =
			json_is_true(json_object_get(query, "recursive")) ? FILES_RECURSIVE : 0;
		v->call.patient = true;
		file_exchange_run(v, FILES_WATCH, &watch_ops);
	}
	json_decref(query);
}
