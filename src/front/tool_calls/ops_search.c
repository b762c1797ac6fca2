/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops_search.c - mcp.search: the tools of the sandbox's servers that fit some words.
 *
 * First every server's tools have to be known, which may mean that it is started: those that are
 * not known yet are asked for at the same time. A server that cannot tell is left out. The index
 * has the tools that this sandbox may call; it is made with the first question and kept with the
 * sandbox until one of the lists is another.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/sandbox.h"
#include "front/spec/code_spec.h"
#include "front/tool_calls/code.h"
#include "front/tool_calls/ops.h"
#include "front/tool_calls/refused_tools.h"
#include "front/tool_calls/rpc.h"
#include "front/tool_calls/upstream.h"
#include "mcp/search.h"

#define ANSWER_MAX (8u << 20)

struct tool_search {
	struct rpc *rpc;
	size_t waiting; /* for so many servers, and once for ourselves */
	size_t limit;
	bool full;
	char query[SEARCH_QUERY_MAX + 1];
	char server[128]; /* only this one; empty: all */
	struct upstream_ask asks[CODE_SERVERS_MAX];
};

static bool wanted(const struct tool_search *h, const char *name)
{
	return !h->server[0] || strcmp(h->server, name) == 0;
}

/* The tools of a server that this sandbox can call, without those that a rule forbids. */
static json_t *callable(struct sandbox *s, const struct upstream *u,
			struct tool_rules_layer operator_)
{
	struct tool_rules_layer own = code_layer(s->code);
	json_t *kept = json_array(), *tool;
	size_t i;

	operator_.usage = own.usage = NULL;
	json_array_foreach(u->tools, i, tool) if (tool_callable(u, tool, &operator_, &own))(void)
		json_array_append(kept, tool);
	return kept;
}

struct kept_search {
	struct search *index;
	json_t *sources; /* the servers' lists it was made from: these, not equal ones */
	json_t *lists;   /* what could be called of each */
};

void ops_search_free(struct kept_search *k)
{
	if (!k)
		return;
	search_free(k->index);
	json_decref(k->sources);
	json_decref(k->lists);
	free(k);
}

/* The lists that are known now, in the order of the spec. */
static json_t *sources_of(struct sandbox *s)
{
	json_t *all = json_array(), *name;
	struct tool_rules_layer ignored;
	size_t i;

	json_array_foreach(s->spec.servers, i, name)
	{
		struct upstream *u = code_server(s, json_string_value(name), &ignored);

		(void)json_array_append(all, u && u->tools ? u->tools : json_null());
	}
	return all;
}

static bool same_sources(const json_t *a, const json_t *b)
{
	if (json_array_size(a) != json_array_size(b))
		return false;
	for (size_t i = 0; i < json_array_size(a); i++)
		if (json_array_get(a, i) != json_array_get(b, i))
			return false;
	return true;
}

/* Takes @sources. */
static struct kept_search *make_index(struct sandbox *s, json_t *sources)
{
	struct kept_search *k = calloc(1, sizeof(*k));
	size_t i;
	json_t *name;

	if (!k) {
		json_decref(sources);
		return NULL;
	}
	*k = (struct kept_search){ search_new(), sources, json_array() };
	json_array_foreach(s->spec.servers, i, name)
	{
		struct tool_rules_layer layer = { 0 };
		struct upstream *u = code_server(s, json_string_value(name), &layer);
		json_t *tools = u && u->tools ? callable(s, u, layer) : NULL;

		if (tools && (json_array_append_new(k->lists, tools) < 0 || !k->index ||
			      search_add(k->index, u->name, u->alias, tools) < 0)) {
			ops_search_free(k);
			return NULL;
		}
	}
	return k;
}

static struct kept_search *index_of(struct sandbox *s)
{
	json_t *sources = sources_of(s);

	if (s->code->search && same_sources(s->code->search->sources, sources)) {
		json_decref(sources);
		return s->code->search;
	}
	ops_search_free(s->code->search);
	s->code->search = make_index(s, sources);
	return s->code->search;
}

static void finish(struct tool_search *h)
{
	_buf_ struct buf b = BUF_INIT(ANSWER_MAX);
	struct kept_search *k = index_of(h->rpc->x->sandbox);

	h->rpc->cancel = NULL;
	if (k && k->index &&
	    search_write(k->index, h->query, h->server[0] ? h->server : NULL, h->limit, h->full,
			 &b) == 0)
		rpc_answer(h->rpc, buf_str(&b), b.len);
	else
		rpc_fail(h->rpc, "internal", NULL, "the daemon is out of memory");
	free(h);
}

static void on_learnt(struct upstream_ask *a, const struct bridge_answer *why)
{
	struct tool_search *h = a->arg;

	(void)why; /* it cannot be called either, and a call gets the reason */
	if (--h->waiting == 0)
		finish(h);
}

static void search_cancel(struct rpc *r)
{
	struct tool_search *h = r->work;

	for (size_t i = 0; i < CODE_SERVERS_MAX; i++)
		upstream_forget(&h->asks[i]);
	free(h);
}

static bool read_request(struct tool_search *h, const json_t *m, const char **ret_why)
{
	const char *query = json_string_value(json_object_get(m, "query"));
	const char *detail = json_string_value(json_object_get(m, "detail"));
	const char *server = json_string_value(json_object_get(m, "server"));
	const json_t *limit = json_object_get(m, "limit");
	json_int_t n = limit ? json_integer_value(limit) : (json_int_t)SEARCH_LIMIT_DEFAULT;

	*ret_why = "'query' must be a string";
	if (!query)
		return false;
	*ret_why = "'limit' must be a number from 1 to 20";
	if ((limit && !json_is_integer(limit)) || n < 1 || n > (json_int_t)SEARCH_LIMIT_MAX)
		return false;
	*ret_why = "'detail' must be 'summary' or 'full'";
	if (json_object_get(m, "detail") &&
	    (!detail || (strcmp(detail, "summary") != 0 && strcmp(detail, "full") != 0)))
		return false;
	*ret_why = "'server' must be the name of one";
	if (json_object_get(m, "server") && (!server || strlen(server) >= sizeof(h->server)))
		return false;
	h->limit = (size_t)n;
	h->full = detail && strcmp(detail, "full") == 0;
	(void)snprintf(h->query, sizeof(h->query), "%s", query);
	if (server)
		(void)snprintf(h->server, sizeof(h->server), "%s", server);
	return true;
}

void ops_search(struct rpc *r, const json_t *m)
{
	struct sandbox *s = r->x->sandbox;
	struct tool_search *h = calloc(1, sizeof(*h));
	struct tool_rules_layer ignored;
	const char *why = "the daemon is out of memory";
	size_t i;
	json_t *name;

	if (!h || !read_request(h, m, &why)) {
		rpc_fail(r, h ? "bad_request" : "internal", NULL, "%s", why);
		free(h);
		return;
	}
	if (h->server[0] && !code_server(s, h->server, &ignored)) {
		rpc_fail(r, "unknown_server", NULL, "this sandbox has no server '%.100s'",
			 h->server);
		free(h);
		return;
	}
	h->rpc = r;
	h->waiting = 1;
	r->work = h;
	r->cancel = search_cancel;
	json_array_foreach(s->spec.servers, i, name)
	{
		struct upstream *u = code_server(s, json_string_value(name), &ignored);
		struct err e = { 0 };

		if (!u || u->tools || !wanted(h, u->name) || i >= CODE_SERVERS_MAX)
			continue;
		h->asks[i] = (struct upstream_ask){ .done = on_learnt, .arg = h };
		if (upstream_learn(r->x, u, &h->asks[i], &e) == 0)
			h->waiting++;
	}
	if (--h->waiting == 0)
		finish(h);
}
