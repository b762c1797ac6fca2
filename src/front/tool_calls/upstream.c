/* SPDX-License-Identifier: Apache-2.0 */
/* upstream.c - The table of servers, and their lists of tools. */
#include "front/tool_calls/upstream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/hooks.h"
#include "front/sandbox/sandboxes.h"
#include "front/support/json_alloc.h"
#include "front/support/log.h"
#include "front/support/schema.h"
#include "front/tool_calls/refused_tools.h"
#include "front/tool_calls/tool_calls.h"

/* A list of tools is a stranger's text that is parsed here, in the jail. */
#define LIST_BYTES (16u << 20)
#define LIST_DEPTH 128u
#define LIST_VALUES 500000u

struct tool_calls *tool_calls_of(const struct sandboxes *sandboxes)
{
	return sandboxes->hooks->tools.part;
}

static void on_changed(struct bridge_link *l, const struct bridge_server *server)
{
	struct tool_calls *calls = l->arg;

	for (size_t i = 0; i < calls->upstreams.n; i++) {
		struct upstream *u = &calls->upstreams.all[i];

		if (server && strcmp(server->name, u->name) != 0)
			continue;
		json_decref(u->tools);
		u->tools = NULL;
	}
}

static int take(struct upstream *u, const struct bridge_server *s, struct err *e)
{
	char where[160];

	u->name = strdup(s->name);
	u->alias = strdup(s->alias);
	u->description = strdup(s->description);
	if (!u->name || !u->alias || !u->description)
		return err_set(e, -ENOMEM, "remember the MCP servers");
	(void)snprintf(where, sizeof(where), "mcpServers.%.100s.caisson", s->name);
	return tool_rules_parse(s->rules, false, where, &u->rules, e);
}

int upstreams_open(struct tool_calls *calls, struct err *e)
{
	struct bridge_link *l = calls->bridge;
	int r = 0;

	calls->upstreams.all = calloc(l->n_servers + 1, sizeof(struct upstream));
	if (!calls->upstreams.all)
		return err_set(e, -ENOMEM, "remember the MCP servers");
	for (size_t i = 0; r == 0 && i < l->n_servers; i++) {
		r = take(&calls->upstreams.all[i], &l->servers[i], e);
		calls->upstreams.n = i + 1;
	}
	l->on_changed = on_changed;
	l->arg = calls;
	return r;
}

void upstreams_close(struct tool_calls *calls)
{
	for (size_t i = 0; i < calls->upstreams.n; i++) {
		struct upstream *u = &calls->upstreams.all[i];

		free(u->name);
		free(u->alias);
		free(u->description);
		tool_rules_free(&u->rules);
		json_decref(u->tools);
	}
	free(calls->upstreams.all);
	calls->upstreams = (struct upstreams){ 0 };
}

struct upstream *upstream_at(const struct tool_calls *calls, size_t i)
{
	return i < calls->upstreams.n ? &calls->upstreams.all[i] : NULL;
}

struct upstream *upstream_find(const struct tool_calls *calls, const char *name)
{
	for (size_t i = 0; i < calls->upstreams.n; i++)
		if (strcmp(calls->upstreams.all[i].name, name) == 0)
			return &calls->upstreams.all[i];
	return NULL;
}

const char *upstream_state(const struct tool_calls *calls, const struct upstream *u)
{
	const struct bridge_server *s = bridge_server(calls->bridge, u->name);

	return s ? s->state : "failed";
}

/* ---- tools --------------------------------------------------------------------------------- */

static json_t *parse_list(const struct buf *text)
{
	json_t *all = NULL, *list, *one;
	size_t i;

	if (text->len <= LIST_BYTES && schema_depth_ok(buf_str(text), text->len, LIST_DEPTH) &&
	    schema_values_ok(buf_str(text), text->len, LIST_VALUES))
		all = json_alloc_load(buf_str(text), text->len, 0, NULL);
	list = json_incref(json_object_get(all, "tools"));
	json_decref(all);
	if (!json_is_array(list)) {
		json_decref(list);
		return NULL;
	}
	/* One without a name cannot be called. */
	for (i = json_array_size(list); i-- > 0;) {
		one = json_array_get(list, i);
		if (!json_is_string(json_object_get(one, "name")))
			(void)json_array_remove(list, i);
	}
	return list;
}

/* A list that is empty because of the rules is a riddle to everybody who does not know them. */
static void log_refused(const struct upstream *u)
{
	const struct tool_rules_layer operator_ = { &u->rules, NULL };
	_buf_ struct buf note = BUF_INIT(4096);
	size_t n = refused_tools(u, &operator_, NULL, &note);

	if (n > 0)
		log_event(n == json_array_size(u->tools) ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO,
			  "mcp_tools_refused", F_STR("server", u->name), F_UINT("refused", n),
			  F_UINT("tools", json_array_size(u->tools)), F_STR("why", buf_str(&note)));
}

static void on_list(struct bridge_call *c, const struct bridge_answer *a)
{
	static const struct bridge_answer nonsense = {
		.code = "unavailable",
		.message = "the server's list of tools makes no sense, or is larger than 16 MiB"
	};
	struct upstream_ask *ask = c->arg;
	struct upstream *u = ask->upstream;
	json_t *list = a->ok ? parse_list(a->text) : NULL;

	if (list) {
		json_decref(u->tools);
		u->tools = list;
		log_refused(u);
		ask->done(ask, NULL);
	} else {
		ask->done(ask, a->ok ? &nonsense : a);
	}
}

int upstream_learn(const struct execution *x, struct upstream *u, struct upstream_ask *a,
		   struct err *e)
{
	a->tool_calls = tool_calls_of(x->sandboxes);
	a->upstream = u;
	a->call = (struct bridge_call){ .done = on_list, .arg = a };
	return bridge_tools(tool_calls_of(x->sandboxes)->bridge, &a->call, u->name,
			    execution_patience_ms(x), e);
}

void upstream_forget(struct upstream_ask *a)
{
	if (a->tool_calls)
		bridge_cancel(a->tool_calls->bridge, &a->call);
}

const json_t *upstream_tool(const struct upstream *u, const char *name)
{
	size_t i;
	json_t *one;

	json_array_foreach(u->tools, i,
			   one) if (strcmp(json_string_value(json_object_get(one, "name")), name) ==
				    0) return one;
	return NULL;
}

bool upstream_read_only(const json_t *tool)
{
	return json_is_true(json_object_get(json_object_get(tool, "annotations"), "readOnlyHint"));
}

const char *upstream_name(const struct tool_calls *calls, size_t i)
{
	const struct upstream *u = upstream_at(calls, i);

	return u ? u->name : NULL;
}
