/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve.c - From a request to its handler.
 *
 * Theory of operation. A request is checked in this order: host, origin and token, then route and
 * method, then the form of its head; only then is a body read. So a caller without a token learns
 * only that it has none. Before a handler is called, the fields of the query or the body are
 * checked, and then the sandbox that the path names is looked up.
 *
 * A right token is always admitted, so guessing cannot be stopped, only be made slow: the answer to
 * a guess waits. The number of answers that wait is bounded by the connections, each of which has
 * one request at a time; a client that goes away takes its answer along.
 */
#include "front/http/serve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "front/http/idempotency.h"
#include "front/http/reply.h"
#include "front/http/request.h"
#include "front/ports/port_head.h"
#include "front/support/daemon.h"
#include "front/support/log.h"
#include "front/support/metrics.h"
#include "net/conn.h"
#include "net/http.h"

#define HEAD_MAX 32768u
#define TARGET_MAX 8192u
#define GUESS_NS CLOCK_NS_PER_S

struct request_context *context_of(const struct http_exchange *x)
{
	return http_user(x);
}

const char *context_param(const struct http_exchange *x, size_t i)
{
	return context_of(x)->params.value[i];
}

const char *context_text(const struct http_exchange *x, const char *name)
{
	return json_string_value(json_object_get(context_of(x)->fields, name));
}

uint64_t context_number(const struct http_exchange *x, const char *name, uint64_t fallback)
{
	const json_t *v = json_object_get(context_of(x)->fields, name);

	return v ? (uint64_t)json_integer_value(v) : fallback;
}

void context_wait(struct http_exchange *x, void *work, void (*gone)(struct request_context *v))
{
	context_of(x)->work = work;
	context_of(x)->gone = gone;
}

struct http_exchange *context_done(struct http_exchange *x)
{
	if (x)
		context_wait(x, NULL, NULL);
	return x;
}

void context_execution(const struct http_exchange *x, char id[33])
{
	const struct request_context *v = context_of(x);

	if (v->execution_id[0])
		memcpy(id, v->execution_id, sizeof(v->execution_id));
}

static void on_gone(struct http_exchange *x)
{
	struct request_context *v = context_of(x);

	if (v->gone)
		v->gone(v);
}

/* ---- routes -------------------------------------------------------------------------------- */

const struct route *route_at(size_t i)
{
	for (size_t t = 0; route_tables[t]; t++)
		for (const struct route *r = route_tables[t]; r->method; r++)
			if (i-- == 0)
				return r;
	return NULL;
}

bool route_takes_json(const struct route *r)
{
	return r->method[0] == 'P' && !r->content && !r->raw && !r->below;
}

/* Whether @path has the form of @r; @p gets the values of its parameters. */
static bool match(const struct route *r, const char *path, struct route_params *p)
{
	const char *pattern = r->path;
	size_t used = 0;

	p->n = 0;
	while (*pattern && *path) {
		if (*pattern != '{') {
			if (*pattern++ != *path++)
				return false;
			if (r->below && *pattern == '{' && !strchr(pattern, '/'))
				return true;
			continue;
		}
		size_t len = strcspn(path, "/");

		if (len == 0 || p->n == ROUTE_PARAMS_MAX || len >= sizeof(p->text) - used)
			return false;
		memcpy(p->text + used, path, len);
		p->text[used + len] = '\0';
		p->value[p->n++] = p->text + used;
		used += len + 1;
		path += len;
		pattern += strcspn(pattern, "}") + 1;
	}
	return !*pattern && !*path;
}

static void allow_method(struct buf *allow, unsigned int *seen, const char *method)
{
	static const char *const methods[] = { "GET",   "HEAD",   "POST",   "PUT",
					       "PATCH", "DELETE", "OPTIONS" };

	for (unsigned int i = 0; i < ARRAY_SIZE(methods); i++)
		if (strcmp(method, methods[i]) == 0 && !(*seen & 1u << i)) {
			(void)buf_printf(allow, "%s%s", *seen ? ", " : "", method);
			*seen |= 1u << i;
		}
}

const struct route *route_find(const char *method, const char *path, struct route_params *params,
			       int *status, struct buf *allow)
{
	const char *wanted = strcmp(method, "HEAD") == 0 ? "GET" : method;
	bool any = strcmp(path, "*") == 0;
	const struct route *r;
	unsigned int seen = 0;

	*status = 404;
	for (size_t i = 0; (r = route_at(i)); i++)
		if ((strcmp(r->method, wanted) == 0 || r->method[0] == '*') &&
		    match(r, path, params))
			return r;
	for (size_t i = 0; (r = route_at(i)); i++) {
		if (!any && !match(r, path, params))
			continue;
		allow_method(allow, &seen, r->method);
		if (strcmp(r->method, "GET") == 0)
			allow_method(allow, &seen, "HEAD");
	}
	params->n = 0;
	if (!seen)
		return NULL;
	allow_method(allow, &seen, "OPTIONS");
	*status = 405;
	return NULL;
}

/* ---- admission ----------------------------------------------------------------------------- */

struct waiting {
	struct timer timer;
	struct http_exchange *x;
	struct auth_verdict verdict;
};

static void on_guess_gone(struct request_context *v)
{
	struct waiting *w = v->work;

	timer_cancel(&w->timer);
	free(w);
}

static void on_guess_time(struct timer *t)
{
	struct waiting *w = t->arg;
	struct http_exchange *x = context_done(w->x);
	const struct auth_verdict verdict = w->verdict;

	free(w);
	reply_verdict(x, &verdict, NULL);
}

/* Without a handler, the body is dropped. */
static void on_body(struct http_exchange *x, const char *data, size_t len)
{
	struct request_context *v = context_of(x);

	if (v->body)
		v->body(v, data, len);
}

void serve_refuse(struct http_exchange *x, const struct auth_verdict *verdict, const char *metadata)
{
	bool guess = verdict->status == 429;
	struct waiting *w = guess ? malloc(sizeof(*w)) : NULL;

	metric_add(M_AUTH_FAILURES, guess || verdict->status == 401 ? 1 : 0);
	if (!w) {
		reply_verdict(x, verdict, metadata);
		return;
	}
	*w = (struct waiting){ { .fn = on_guess_time, .arg = w }, x, *verdict };
	context_of(x)->refused = true;
	context_wait(x, w, on_guess_gone);
	http_take_body(x, on_body);
	http_pause_body(x, true);
	timer_set(context_of(x)->server->loop, &w->timer, clock_now_ns() + GUESS_NS);
}

/* False: answered. Otherwise the request context has route and owner. */
static bool admit(struct server *server, struct http_exchange *x, struct request_context *v)
{
	const struct http_request *q = http_request(x);
	_buf_ struct buf allow = BUF_INIT(256);
	struct auth_verdict verdict;
	int status = 0;

	v->route = route_find(q->method, q->path, &v->params, &status, &allow);
	if (v->route && v->route->below)
		return server->hooks->admit_port(server->services, x, v);
	auth_check(server->auth, x, v->route, clock_now_ns(), &verdict);
	if (verdict.status) {
		_buf_ struct buf metadata = BUF_INIT(2048);

		server->hooks->challenge(server->mcp, x, &metadata);
		serve_refuse(x, &verdict, metadata.len > 0 ? buf_str(&metadata) : NULL);
		return false;
	}
	memcpy(v->owner, verdict.owner, sizeof(v->owner));
	if (!v->route || !v->route->open)
		conn_admit(http_conn(x));
	if (v->route)
		return request_head_ok(x, v->route);
	if (allow.len > 0)
		http_add_header(x, "Allow", buf_str(&allow));
	if (strcmp(q->method, "OPTIONS") == 0 && status == 405)
		reply_empty(x, 204);
	else if (status == 405)
		reply_error(x, 405, "method_not_allowed", NULL, "see the Allow header",
			    "this path does not support %s", q->method);
	else
		reply_error(x, 404, "not_found", NULL, "see /docs", "unknown path");
	return false;
}

/* ---- requests ------------------------------------------------------------------------------ */

/* Whether the handler is called with the head, and gets the body as it comes. */
static bool takes_body(const struct route *r)
{
	return r->content || r->below;
}

static void handle(struct http_exchange *x, struct request_context *v)
{
	const struct route *r = v->route;
	struct sandbox *s;

	if (r->handler.mcp)
		r->handler.mcp(v->server->mcp, x);
	else if (r->handler.jupyter)
		r->handler.jupyter(v->server->notebooks, x);
	else if (r->handler.services)
		r->handler.services(v->server->services, x);
	else if ((s = v->server->hooks->own_sandbox(v->server->services, x)))
		r->handler.sandbox(s, x);
}

static void call_handler(struct http_exchange *x, struct request_context *v)
{
	json_t *fields;

	if (!request_fields(x, v->route, &fields))
		return;
	v->fields = fields;
	if (v->server->hooks->ready(v->server->services, x))
		handle(x, v);
	json_decref(fields); /* the answer may have freed the request context */
}

void serve_again(struct http_exchange *x, json_t *fields)
{
	struct request_context *v = context_of(x);

	v->fields = fields; /* borrowed from the caller, as above */
	handle(x, v);
}

static int on_head(struct http_exchange *x)
{
	struct server *server = http_config_of(x)->arg;
	struct request_context *v = calloc(1, sizeof(*v));

	if (!v) {
		reply_no_memory(x);
		return 503;
	}
	v->server = server;
	http_set_user(x, v, on_gone);
	if (!admit(server, x, v))
		return http_status(x);
	if (takes_body(v->route)) {
		http_take_body(x, on_body);
		call_handler(x, v);
		return http_status(x);
	}
	return 0;
}

static void on_request(struct http_exchange *x)
{
	struct request_context *v = context_of(x);

	if (v->refused)
		return;
	if (!takes_body(v->route))
		call_handler(x, v);
	else if (v->body_end)
		v->body_end(v);
}

static void on_error(struct http_exchange *x, int status, const char *message)
{
	reply_protocol(x, status, message);
}

/* One line per request. Texts of the client are values of the log, which escapes and cuts them. */
static void on_done(struct http_exchange *x)
{
	const struct http_request *q = http_request(x);
	const struct server *server = http_config_of(x)->arg;
	struct request_context *v = context_of(x);
	uint64_t ns = clock_now_ns() - http_started_ns(x);
	const char *pattern = v && v->route ? v->route->path : "other";
	char id[REPLY_ID_MAX], path[2 * LOG_VALUE_MAX]; /* the log cuts it */

	reply_request_id(x, id);
	if (q->path && auth_is_within(server->auth, q->path, strlen(q->path)))
		(void)snprintf(path, sizeof(path), "(has a token)");
	else
		port_hide(q->path ? q->path : "", path, sizeof(path));
	metric_http(pattern, http_status(x), ns);
	log_event(LOG_LEVEL_INFO, "request", F_STR("id", id),
		  F_STR("peer", conn_peer(http_conn(x))->text), F_STR("owner", v ? v->owner : ""),
		  F_STR("method", q->method ? q->method : ""), F_STR("path", path),
		  F_INT("status", http_status(x)), F_STR("code", v && v->error ? v->error : ""),
		  F_MS("ms", ns), F_UINT("bytes_in", q->body_len),
		  F_UINT("bytes_out", http_bytes_out(x)));
	if (v)
		idempotency_drop(v->idempotency); /* never answered */
	free(v);
}

void serve_setup(struct server *server)
{
	server->http = (struct http_config){
		.head_max = HEAD_MAX,
		.target_max = TARGET_MAX,
		.body_max = server->daemon->config.max_body,
		.first_ns = 10 * CLOCK_NS_PER_S,
		.head_ns = 10 * CLOCK_NS_PER_S,
		.body_ns = 60 * CLOCK_NS_PER_S,
		.body_min_rate = 1024,
		.idle_ns = 75 * CLOCK_NS_PER_S,
		.write_ns = 30 * CLOCK_NS_PER_S,
		.on_head = on_head,
		.on_request = on_request,
		.on_error = on_error,
		.on_done = on_done,
		.own_path = server->hooks->own_path,
		.arg = server,
	};
}
