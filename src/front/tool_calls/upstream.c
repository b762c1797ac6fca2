/* SPDX-License-Identifier: Apache-2.0 */
/* upstream.c - The table of servers, and their lists of tools. */
#include "front/tool_calls/upstream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "front/sandbox/execution.h"
#include "front/support/front.h"
#include "front/support/json_alloc.h"
#include "front/support/log.h"
#include "front/support/schema.h"

/* A list of tools is a stranger's text that is parsed here, in the jail. */
#define LIST_BYTES (16u << 20)
#define LIST_DEPTH 128u
#define LIST_VALUES 500000u

static void on_changed(struct bridge_link *l, const struct bridge_server *server)
{
	struct front *f = l->arg;

	for (size_t i = 0; i < f->upstreams->n; i++) {
		struct upstream *u = &f->upstreams->all[i];

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

int upstreams_open(struct front *f, struct err *e)
{
	struct bridge_link *l = f->bridge;
	int r = 0;

	f->upstreams->all = calloc(l->n_servers + 1, sizeof(struct upstream));
	if (!f->upstreams->all)
		return err_set(e, -ENOMEM, "remember the MCP servers");
	for (size_t i = 0; r == 0 && i < l->n_servers; i++) {
		r = take(&f->upstreams->all[i], &l->servers[i], e);
		f->upstreams->n = i + 1;
	}
	l->on_changed = on_changed;
	l->arg = f;
	return r;
}

void upstreams_close(struct front *f)
{
	for (size_t i = 0; i < f->upstreams->n; i++) {
		struct upstream *u = &f->upstreams->all[i];

		free(u->name);
		free(u->alias);
		free(u->description);
		tool_rules_free(&u->rules);
		json_decref(u->tools);
	}
	free(f->upstreams->all);
	*f->upstreams = (struct upstreams){ 0 };
}

struct upstream *upstream_at(const struct front *f, size_t i)
{
	return i < f->upstreams->n ? &f->upstreams->all[i] : NULL;
}

struct upstream *upstream_find(const struct front *f, const char *name)
{
	for (size_t i = 0; i < f->upstreams->n; i++)
		if (strcmp(f->upstreams->all[i].name, name) == 0)
			return &f->upstreams->all[i];
	return NULL;
}

const char *upstream_state(const struct front *f, const struct upstream *u)
{
	const struct bridge_server *s = bridge_server(f->bridge, u->name);

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
		ask->done(ask, NULL);
	} else {
		ask->done(ask, a->ok ? &nonsense : a);
	}
}

int upstream_learn(const struct execution *x, struct upstream *u, struct upstream_ask *a,
		   struct err *e)
{
	a->f = x->f;
	a->upstream = u;
	a->call = (struct bridge_call){ .done = on_list, .arg = a };
	return bridge_tools(x->f->bridge, &a->call, u->name, execution_patience_ms(x), e);
}

void upstream_forget(struct upstream_ask *a)
{
	if (a->f)
		bridge_cancel(a->f->bridge, &a->call);
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

const char *upstream_name(const struct front *f, size_t i)
{
	const struct upstream *u = upstream_at(f, i);

	return u ? u->name : NULL;
}
