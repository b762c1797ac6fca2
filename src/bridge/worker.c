/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker.c - Requests of the front to the server that is meant.
 *
 * One loop for everything: the front's socket, programs' pipes, libcurl's sockets. When the front
 * is gone the servers are ended, and waited for as long as their ends take.
 */
#include "bridge/worker.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "bridge/child.h"
#include "bridge/config.h"
#include "bridge/fetch.h"
#include "bridge/outlet.h"
#include "bridge/upstream.h"
#include "mcp/slice.h"
#include "net/loop.h"
#include "wire/bridge.h"

#define END_NS (4 * CLOCK_NS_PER_S)

struct worker {
	struct loop loop;
	struct outlet outlet;
	struct fetcher fetcher;
	struct children children;
	struct upstream *upstreams;
	size_t n;
	struct timer end;
	bool ending;
};

/* ---- requests ------------------------------------------------------------------------------ */

static struct upstream *find(struct worker *w, const char *name)
{
	for (size_t i = 0; name && i < w->n; i++)
		if (strcmp(w->upstreams[i].config->name, name) == 0)
			return &w->upstreams[i];
	return NULL;
}

static void call(struct worker *w, struct upstream *u, uint64_t id, const json_t *head,
		 struct buf *body)
{
	const char *tool = json_string_value(json_object_get(head, "tool"));
	json_int_t ms = json_integer_value(json_object_get(head, "timeout_ms"));
	bool progress = json_is_true(json_object_get(head, "progress"));

	if (!tool || ms < 1 || ms > BRIDGE_TIMEOUT_MAX_MS)
		outlet_error(&w->outlet, id, "bad_request", "a call needs a tool and a timeout_ms",
			     NULL);
	else if (body->len > BRIDGE_MESSAGE_MAX)
		outlet_error(&w->outlet, id, "too_large", "the arguments are larger than 64 MiB",
			     NULL);
	else if (slice_members(buf_str(body), body->len, NULL, 0, NULL) < 0 ||
		 memchr(body->data, '\n', body->len) || memchr(body->data, '\r', body->len))
		outlet_error(&w->outlet, id, "bad_request",
			     "arguments must be a JSON object on one line", NULL);
	else
		upstream_call(u, id, tool, body, (uint64_t)ms, progress);
}

static void on_request(struct outlet *o, const json_t *head, struct buf *body)
{
	struct worker *w = o->arg;
	const char *op = json_string_value(json_object_get(head, "op"));
	const char *server = json_string_value(json_object_get(head, "server"));
	json_int_t id = json_integer_value(json_object_get(head, "id"));
	struct upstream *u = find(w, server);
	char message[200];

	if (!op || id < 1)
		return;
	if (strcmp(op, "cancel") == 0) {
		for (size_t i = 0; i < w->n; i++)
			if (upstream_cancel(&w->upstreams[i], (uint64_t)id))
				return;
		return;
	}
	if (!u) {
		(void)snprintf(message, sizeof(message), "there is no MCP server '%.128s'",
			       server ? server : "");
		outlet_error(o, (uint64_t)id, "unknown_server", message, NULL);
	} else if (strcmp(op, "tools") == 0) {
		json_int_t ms = json_integer_value(json_object_get(head, "timeout_ms"));

		upstream_tools(u, (uint64_t)id,
			       ms > 0 && ms < BRIDGE_TOOLS_MS ? (uint64_t)ms : BRIDGE_TOOLS_MS);
	} else if (strcmp(op, "call") == 0) {
		call(w, u, (uint64_t)id, head, body);
	} else {
		outlet_error(o, (uint64_t)id, "bad_request", "there is no such op", NULL);
	}
}

/* ---- life ---------------------------------------------------------------------------------- */

static int hello(struct worker *w, uint64_t life)
{
	static const char *const transports[] = { "stdio", "http", "sse" };
	json_t *list = json_array(), *body;
	_mem_ char *text = NULL;

	for (size_t i = 0; i < w->n; i++) {
		const struct server_config *s = w->upstreams[i].config;

		if (json_array_append_new(
			    list, json_pack("{s:s, s:s, s:s*, s:s, s:s, s:O*}", "name", s->name,
					    "alias", s->alias, "description", s->description,
					    "transport", transports[s->transport], "state", "idle",
					    "rules", s->rules)) < 0) {
			json_decref(list);
			return -ENOMEM;
		}
	}
	body = json_pack("{s:o}", "servers", list);
	text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	json_decref(body);
	if (!text)
		return -ENOMEM;
	outlet_say(&w->outlet, json_pack("{s:s, s:I}", "event", "hello", "life", (json_int_t)life),
		   text, strlen(text));
	return 0;
}

/* The front is gone, and we only wait for what was begun to end. */
static void stop_if_done(struct worker *w)
{
	if (w->ending && !w->children.first && w->fetcher.live == 0)
		loop_stop(&w->loop);
}

static void on_no_child(struct children *all)
{
	stop_if_done(all->arg);
}

static void on_no_fetch(struct fetcher *all)
{
	stop_if_done(all->arg);
}

static void on_late(struct timer *t)
{
	loop_stop(t->loop ? t->loop : t->arg);
}

static void on_end(struct outlet *o)
{
	struct worker *w = o->arg;

	for (size_t i = 0; i < w->n; i++)
		upstream_end(&w->upstreams[i]);
	w->ending = true;
	stop_if_done(w);
	w->end = (struct timer){ .fn = on_late, .arg = &w->loop };
	timer_set(&w->loop, &w->end, clock_now_ns() + END_NS);
}

int worker_run(const struct bridge_config *c, int fd, uint64_t life, struct err *e)
{
	static struct worker w;
	int r = loop_init(&w.loop, e);

	(void)signal(SIGPIPE, SIG_IGN);
	if (r == 0)
		r = fetcher_init(&w.fetcher, &w.loop, e);
	if (r < 0)
		return r;
	const struct wire_base base = { &w.loop, &w.children, &w.fetcher };

	w.children = (struct children){ .loop = &w.loop, .on_none = on_no_child, .arg = &w };
	w.fetcher.on_none = on_no_fetch;
	w.fetcher.arg = &w;
	w.upstreams = calloc(c->n ? c->n : 1, sizeof(*w.upstreams));
	if (!w.upstreams)
		return err_set(e, -ENOMEM, "start the worker");
	for (w.n = 0; w.n < c->n; w.n++)
		upstream_init(&w.upstreams[w.n], &c->servers[w.n], &base, &w.outlet);
	w.outlet.on_request = on_request;
	w.outlet.on_end = on_end;
	w.outlet.arg = &w;
	r = outlet_open(&w.outlet, &w.loop, fd, e);
	if (r == 0 && hello(&w, life) < 0)
		r = err_set(e, -ENOMEM, "say hello");
	if (r == 0)
		r = loop_run(&w.loop, e);
	outlet_close(&w.outlet);
	free(w.upstreams);
	fetcher_free(&w.fetcher);
	loop_free(&w.loop);
	return r;
}
