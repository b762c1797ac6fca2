/* SPDX-License-Identifier: Apache-2.0 */
/* code.c - A sandbox's servers and what is left of its budgets. */
#include "front/tool_calls/code.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/sandbox.h"
#include "front/tool_calls/ops.h"
#include "front/tool_calls/tool_calls.h"
#include "front/tool_calls/upstream.h"

#define REQUESTS_PER_S 2000u
#define REQUESTS_BURST 4000u
#define MILLI 1000u

static bool open_usage(struct sandbox *s, struct code *c)
{
	uint64_t now = clock_now_ns();
	size_t i;
	json_t *name;

	if (!tool_usage_init(&c->usage, &c->rules, s->tool_calls, now))
		return false;
	json_array_foreach(s->spec.servers, i, name)
	{
		const struct upstream *u =
			upstream_find(tool_calls_of(s->sandboxes), json_string_value(name));

		/* One that the configuration has no more: its calls are refused, and need no count.
		 */
		if (u && !tool_usage_init(&c->by_server[i], &u->rules, s->tool_calls, now))
			return false;
	}
	return true;
}

struct code *code_open(struct sandbox *s)
{
	struct code *c = s->code;
	struct err e = { 0 };

	if (c || !s->spec.servers)
		return c;
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	s->code = c;
	c->n_servers = json_array_size(s->spec.servers);
	c->by_server = calloc(c->n_servers + 1, sizeof(*c->by_server));
	c->tokens = REQUESTS_BURST * MILLI;
	c->at_ns = clock_now_ns();
	if (!c->by_server || tool_rules_parse(s->spec.tools, true, "tools", &c->rules, &e) < 0 ||
	    !open_usage(s, c))
		code_close(s);
	return s->code;
}

void code_close(struct sandbox *s)
{
	struct code *c = s->code;

	if (!c)
		return;
	s->code = NULL;
	for (size_t i = 0; c->by_server && i < c->n_servers; i++)
		tool_usage_free(&c->by_server[i]);
	ops_search_free(c->search);
	tool_usage_free(&c->usage);
	tool_rules_free(&c->rules);
	free(c->by_server);
	free(c);
}

struct upstream *code_server(struct sandbox *s, const char *name, struct tool_rules_layer *ret)
{
	struct upstream *u = NULL;
	size_t i;
	json_t *one;

	json_array_foreach(s->spec.servers, i, one)
	{
		if (strcmp(json_string_value(one), name) != 0)
			continue;
		u = upstream_find(tool_calls_of(s->sandboxes), name);
		if (u)
			*ret = (struct tool_rules_layer){ &u->rules, &s->code->by_server[i] };
	}
	return u;
}

struct tool_rules_layer code_layer(struct code *c)
{
	return (struct tool_rules_layer){ &c->rules, &c->usage };
}

bool code_may_ask(struct code *c, uint64_t now_ns)
{
	uint64_t since_ms = (now_ns - c->at_ns) / CLOCK_NS_PER_MS;

	c->tokens += since_ms * REQUESTS_PER_S;
	c->at_ns += since_ms * CLOCK_NS_PER_MS;
	if (c->tokens > REQUESTS_BURST * MILLI)
		c->tokens = REQUESTS_BURST * MILLI;
	if (c->tokens < MILLI)
		return false;
	c->tokens -= MILLI;
	return true;
}

void code_write(const struct execution *x, struct json *j)
{
	const struct sandbox *s = x->sandbox;
	const struct memory_place place = ops_place(s);
	size_t i;
	json_t *name;

	if (!s->spec.servers)
		return;
	json_member_object(j, "mcp");
	json_member_array(j, "servers");
	json_array_foreach(s->spec.servers, i, name)
	{
		const struct upstream *u =
			upstream_find(tool_calls_of(s->sandboxes), json_string_value(name));

		if (!u)
			continue;
		json_object_begin(j);
		json_member_str(j, "name", u->name);
		json_member_str(j, "alias", u->alias);
		json_member_str(j, "description", u->description);
		json_object_end(j);
	}
	json_array_end(j);
	json_member_uint(j, "saved_tools", memory_tools(&place));
	json_object_end(j);
}
