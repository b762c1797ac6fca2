/* SPDX-License-Identifier: Apache-2.0 */
/* ops.c - The operations that code can ask the host for, by name, and most of them: servers, tools,
 * memory. tool_call.c calls tools, ops_search.c finds them. */
#include "front/tool_calls/ops.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/sandbox.h"
#include "front/sandbox/sandboxes.h"
#include "front/support/json_alloc.h"
#include "front/support/time_text.h"
#include "front/tool_calls/code.h"
#include "front/tool_calls/refused_tools.h"
#include "front/tool_calls/rpc.h"
#include "front/tool_calls/tool_calls.h"
#include "front/tool_calls/upstream.h"

#define LIST_MAX (32u << 20)
#define BYTES_PER_S (8 << 20)
#define BYTES_BURST (32 << 20)
#define BYTES_EACH 4096 /* whatever it is */
#define WRITTEN 4       /* one that is written counts as so many */

static void answer(struct rpc *r, struct json *j, struct buf *b)
{
	if (json_finish(j) == 0)
		rpc_answer(r, buf_str(b), b->len);
	else
		rpc_fail(r, "too_large", NULL, "the answer could not be written");
}

/* ---- servers ------------------------------------------------------------------------------- */

static void run_servers(struct rpc *r, const json_t *m)
{
	_buf_ struct buf b = BUF_INIT(LIST_MAX);
	struct sandbox *s = r->x->sandbox;
	struct tool_rules_layer ignored;
	struct json j;

	(void)m;
	json_init(&j, &b);
	json_object_begin(&j);
	json_member_array(&j, "servers");
	for (size_t i = 0; upstream_at(tool_calls_of(s->sandboxes), i); i++) {
		const struct upstream *u = upstream_at(tool_calls_of(s->sandboxes), i);

		json_object_begin(&j);
		json_member_str(&j, "name", u->name);
		json_member_str(&j, "alias", u->alias);
		json_member_str(&j, "description", u->description);
		json_member_str(&j, "state", upstream_state(tool_calls_of(s->sandboxes), u));
		json_member_bool(&j, "loaded", code_server(s, u->name, &ignored) != NULL);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_object_end(&j);
	answer(r, &j, &b);
}

/* ---- tools --------------------------------------------------------------------------------- */

struct listing {
	struct upstream_ask ask;
	struct rpc *rpc;
	struct upstream *upstream;
	struct tool_rules_layer operator_;
};

/* Those that could be called, once or more often. */
static void write_tools(struct rpc *r, const struct upstream *u, struct tool_rules_layer operator_)
{
	_buf_ struct buf b = BUF_INIT(LIST_MAX), note = BUF_INIT(4096);
	struct tool_rules_layer own = code_layer(r->x->sandbox->code);
	struct json j;
	size_t i;
	json_t *tool;

	operator_.usage = own.usage = NULL;
	json_init(&j, &b);
	json_object_begin(&j);
	json_member_array(&j, "tools");
	json_array_foreach(u->tools, i, tool)
	{
		char *text = tool_callable(u, tool, &operator_, &own) ?
				     json_dumps(tool, JSON_COMPACT) :
				     NULL;

		if (text)
			json_raw(&j, text, strlen(text));
		json_alloc_free(text);
	}
	json_array_end(&j);
	json_member_array(&j, "refused");
	json_array_foreach(u->tools, i, tool)
	{
		if (!tool_callable(u, tool, &operator_, &own))
			(void)json_str(&j, json_string_value(json_object_get(tool, "name")));
	}
	json_array_end(&j);
	if (refused_tools(u, &operator_, &own, &note) > 0)
		json_member_str(&j, "note", buf_str(&note));
	json_object_end(&j);
	answer(r, &j, &b);
}

static void listing_cancel(struct rpc *r)
{
	struct listing *l = r->work;

	upstream_forget(&l->ask);
	free(l);
}

static void on_learnt(struct upstream_ask *ask, const struct bridge_answer *why)
{
	struct listing *l = ask->arg;
	struct rpc *r = l->rpc;

	r->cancel = NULL;
	if (why)
		rpc_fail(r, why->code, why->hint, "%s", why->message);
	else
		write_tools(r, l->upstream, l->operator_);
	free(l);
}

static void run_tools(struct rpc *r, const json_t *m)
{
	const char *server = json_string_value(json_object_get(m, "server"));
	struct tool_rules_layer operator_ = { 0 };
	struct upstream *u = server ? code_server(r->x->sandbox, server, &operator_) : NULL;
	struct err e = { 0 };
	struct listing *l;

	if (!server) {
		rpc_fail(r, "bad_request", NULL, "'server' must be a string");
		return;
	}
	if (!u) {
		rpc_fail(r, "unknown_server", NULL, "this sandbox has no server '%.100s'", server);
		return;
	}
	if (u->tools) {
		write_tools(r, u, operator_);
		return;
	}
	l = calloc(1, sizeof(*l));
	if (!l) {
		rpc_fail(r, "internal", NULL, "the daemon is out of memory");
		return;
	}
	*l = (struct listing){ .ask = { .done = on_learnt, .arg = l },
			       .rpc = r,
			       .upstream = u,
			       .operator_ = operator_ };
	r->work = l;
	r->cancel = listing_cancel;
	if (upstream_learn(r->x, u, &l->ask, &e) < 0) {
		r->cancel = NULL;
		free(l);
		rpc_fail(r, "unavailable", NULL, "%s", e.msg);
	}
}

/* ---- memory.* and tool.* ------------------------------------------------------------------- */

/*
 * The store is read and written here and now, and everybody waits for it. So each sandbox has its
 * share of bytes in a second, of which a written one costs more than a read one; a sandbox beyond
 * its share is refused and has to wait.
 */

/* Whether there is something left of its share. */
static bool may_go(struct code *c, uint64_t now_ns)
{
	uint64_t since_ms = c->notes_ns ? (now_ns - c->notes_ns) / CLOCK_NS_PER_MS : 60000;

	if (since_ms > 60000)
		since_ms = 60000;
	if (since_ms > 0) {
		c->notes += (int64_t)since_ms * (BYTES_PER_S / 1000);
		c->notes_ns = now_ns;
	}
	if (c->notes > BYTES_BURST)
		c->notes = BYTES_BURST;
	return c->notes > 0;
}

static int64_t written(const json_t *m)
{
	return (int64_t)(json_string_length(json_object_get(m, "value")) +
			 json_string_length(json_object_get(m, "source")));
}

struct memory_place ops_place(const struct sandbox *s)
{
	const char *project = json_string_value(s->spec.project);

	return (struct memory_place){ s->sandboxes->daemon->store, s->owner,
				      project ? project : MEMORY_PROJECT };
}

static void run_memory(struct rpc *r, const char *op, const json_t *m)
{
	const struct memory_place place = ops_place(r->x->sandbox);
	_buf_ struct buf b = BUF_INIT(MEMORY_ANSWER_MAX);
	struct code *c = r->x->sandbox->code;
	struct memory_refusal why;

	if (!may_go(c, r->x->sandboxes->loop->now_ns)) {
		rpc_fail(r, "rate", "wait a second",
			 "this sandbox keeps and reads too much at once");
		return;
	}
	c->notes -= BYTES_EACH + WRITTEN * written(m);
	if (memory_run(&place, op, m, (int64_t)time_now_ms(), &b, &why) == 0) {
		c->notes -= (int64_t)b.len;
		rpc_answer(r, buf_str(&b), b.len);
	} else {
		rpc_fail(r, why.code, NULL, "%s", why.message);
	}
}

/* ---- the table ----------------------------------------------------------------------------- */

static const struct {
	const char *name;
	void (*run)(struct rpc *r, const json_t *m);
} ops[] = {
	{ "mcp.servers", run_servers },
	{ "mcp.tools", run_tools },
	{ "mcp.call", tool_call_run },
	{ "mcp.search", ops_search },
};

void ops_run(struct rpc *r, const json_t *m)
{
	const char *op = json_string_value(json_object_get(m, "op"));

	for (size_t i = 0; op && i < sizeof(ops) / sizeof(*ops); i++)
		if (strcmp(ops[i].name, op) == 0) {
			ops[i].run(r, m);
			return;
		}
	if (op && memory_knows(op)) {
		run_memory(r, op, m);
		return;
	}
	rpc_fail(r, "bad_request", NULL, "there is no operation '%.60s'", op ? op : "");
}
