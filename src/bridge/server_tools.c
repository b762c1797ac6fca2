/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server_tools.c - A server's list of tools: all its pages, kept until the server reports a change
 * or the time of the list is over.
 *
 * A tool's schema may ask for arguments to be repeated as HTTP headers (x-mcp-header). A tool that
 * asks in a way that is not allowed is left out, as the protocol requires. Schemas are passed on
 * and never followed: a $ref is text.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/fd.h"
#include "bridge/bridge_log.h"
#include "bridge/config.h"
#include "bridge/front_link.h"
#include "bridge/upstream.h"
#include "mcp/message.h"

#define LIST_MS 60000u
#define PAGES_MAX 1000u
#define TOOLS_MAX 10000u
#define HEADERS_MAX 32u
#define HEADER_DEPTH 8u

/* ---- headers ------------------------------------------------------------------------------- */

/* A header that a property asks for. */
struct header_field {
	const char *header;
	const char *path[HEADER_DEPTH];
	size_t depth;
};

struct header_list {
	struct header_field list[HEADERS_MAX];
	size_t n;
	const char *path[HEADER_DEPTH];
	bool bad;
};

static bool is_token(const char *s)
{
	static const char token[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

	return s[0] && strlen(s) < 128 && strspn(s, token) == strlen(s);
}

static void add_header_field(struct header_list *w, const json_t *property, const json_t *wanted,
			     size_t depth)
{
	const char *name = json_string_value(wanted);
	const char *type = json_string_value(json_object_get(property, "type"));

	w->bad |= !name || !is_token(name) || w->n == HEADERS_MAX || !type ||
		  (strcmp(type, "string") != 0 && strcmp(type, "integer") != 0 &&
		   strcmp(type, "boolean") != 0);
	for (size_t i = 0; !w->bad && i < w->n; i++)
		w->bad = strcasecmp(w->list[i].header, name) == 0;
	if (w->bad)
		return;
	w->list[w->n].header = name;
	memcpy(w->list[w->n].path, w->path, sizeof(w->path));
	w->list[w->n++].depth = depth;
}

/* Only properties, and properties of properties, count. */
static void look(struct header_list *w, const json_t *schema, size_t depth)
{
	json_t *properties = json_object_get(schema, "properties"), *p;
	const char *name;

	if (depth == HEADER_DEPTH)
		return;
	json_object_foreach(properties, name, p)
	{
		json_t *wanted = json_object_get(p, "x-mcp-header");

		w->path[depth] = name;
		if (wanted)
			add_header_field(w, p, wanted, depth + 1);
		look(w, p, depth + 1);
	}
}

bool tools_check_headers(const json_t *tool)
{
	struct header_list w = { 0 };

	look(&w, json_object_get(tool, "inputSchema"), 0);
	return !w.bad;
}

static char *make_header(const struct header_field *w, const json_t *arguments)
{
	_buf_ struct buf line = BUF_INIT(64u << 10);
	const json_t *v = arguments;
	char number[32];
	const char *text = NULL;

	for (size_t i = 0; i < w->depth; i++)
		v = json_object_get(v, w->path[i]);
	if (json_is_string(v)) {
		text = json_string_value(v);
	} else if (json_is_boolean(v)) {
		text = json_is_true(v) ? "true" : "false";
	} else if (json_is_integer(v)) {
		(void)snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT,
			       json_integer_value(v));
		text = number;
	}
	if (!text)
		return NULL;
	(void)buf_printf(&line, "Mcp-Param-%s: ", w->header);
	return mcp_header_encode(text, &line) < 0 ? NULL : strdup(buf_str(&line));
}

char **tools_headers(const json_t *tool, const char *arguments, size_t len)
{
	struct header_list w = { 0 };
	char **list = calloc(HEADERS_MAX + 1, sizeof(char *));
	json_auto_t *values = NULL;
	size_t n = 0;

	look(&w, json_object_get(tool, "inputSchema"), 0);
	if (list && w.n > 0)
		values = json_loadb(arguments, len, 0, NULL);
	for (size_t i = 0; values && i < w.n; i++) {
		list[n] = make_header(&w.list[i], values);
		n += list[n] ? 1 : 0;
	}
	return list;
}

/* ---- the list ------------------------------------------------------------------------------ */

/* The list that is here; pages that are on their way stay. */
static void drop_list(struct upstream *u)
{
	json_decref(u->tools);
	free(u->tools_text);
	u->tools = NULL;
	u->tools_text = NULL;
}

void tools_free(struct upstream *u)
{
	drop_list(u);
	json_decref(u->pages);
	u->pages = NULL;
	u->tools_len = u->n_pages = 0;
}

bool tools_fresh(const struct upstream *u)
{
	return u->state == UP_READY && u->tools_text &&
	       (u->tools_until_ns == 0 || u->listens || clock_now_ns() < u->tools_until_ns);
}

const json_t *tools_find(const struct upstream *u, const char *name)
{
	size_t i;
	json_t *t;

	json_array_foreach(u->tools, i, t) if (strcmp(json_string_value(json_object_get(t, "name")),
						      name) == 0) return t;
	return NULL;
}

void tools_changed(struct upstream *u)
{
	drop_list(u);
	/* Pages that were listed meanwhile may be of the old list or the new one. */
	u->relist = u->listing;
	front_link_send(u->front,
			json_pack("{s:s, s:s}", "event", "changed", "server", u->config->name),
			NULL, 0);
}

static void ask_page(struct upstream *u, const char *cursor)
{
	struct request *r = request_new(u, ASK_LIST, 0, LIST_MS);
	json_auto_t *p = cursor ? json_pack("{s:s}", "cursor", cursor) : NULL;
	_mem_ char *params = p ? json_dumps(p, JSON_COMPACT) : NULL;

	if (params)
		params[strlen(params) - 1] = '\0'; /* room for what follows */
	if (r)
		request_send(r, "tools/list", params, NULL, NULL);
	else
		tools_failed(u, "internal", "no memory");
}

void tools_want(struct upstream *u)
{
	if (u->listing)
		return;
	u->listing = true;
	u->n_pages = 0;
	json_decref(u->pages);
	u->pages = json_array();
	ask_page(u, NULL);
}

void tools_failed(struct upstream *u, const char *code, const char *why)
{
	u->listing = false;
	json_decref(u->pages);
	u->pages = NULL;
	/* A request for the list; nothing of it is ever sent. */
	for (struct request *r; (r = request_find(u, ASK_TOOLS, false));)
		request_fail(r, code, NULL, "%s", why);
	/* Calls that waited for their headers. */
	for (struct request *r; !u->tools && (r = request_find(u, ASK_CALL, false));)
		request_fail(r, code, NULL, "%s", why);
}

static void keep(struct upstream *u, json_int_t ttl_ms, bool has_ttl)
{
	u->listing = false;
	if (u->relist) {
		u->relist = false;
		tools_want(u);
		return;
	}
	json_auto_t *all = json_pack("{s:O}", "tools", u->pages);

	drop_list(u);
	u->tools = u->pages;
	u->pages = NULL;
	u->tools_text = json_dumps(all, JSON_COMPACT);
	u->tools_len = u->tools_text ? strlen(u->tools_text) : 0;
	u->tools_until_ns =
		has_ttl && ttl_ms >= 0 ? clock_now_ns() + (uint64_t)ttl_ms * CLOCK_NS_PER_MS : 0;
	for (struct request *r; u->tools_text && (r = request_find(u, ASK_TOOLS, false));) {
		front_link_result(u->front, r->front_id, false, u->tools_text, u->tools_len);
		request_free(r);
	}
	if (!u->tools_text)
		tools_failed(u, "internal", "no memory");
}

static void add_tools(struct upstream *u, const json_t *tools)
{
	size_t i;
	json_t *t;

	json_array_foreach(tools, i, t)
	{
		const char *name = json_string_value(json_object_get(t, "name"));

		if (!name || json_array_size(u->pages) >= TOOLS_MAX)
			continue;
		if (!tools_check_headers(t)) {
			log_text(LOG_WARNING, "mcp_tool", u->config->name,
				 "the tool '%.100s' is left out: its x-mcp-header is not allowed",
				 name);
			continue;
		}
		(void)json_array_append(u->pages, t);
	}
}

void tools_page(struct request *r, const char *text, size_t len)
{
	struct upstream *u = r->up;
	json_auto_t *page = json_loadb(text, len, 0, NULL);
	const json_t *tools = json_object_get(page, "tools");
	const char *cursor = json_string_value(json_object_get(page, "nextCursor"));
	json_t *ttl = json_object_get(page, "ttlMs");

	request_free(r);
	if (!json_is_array(tools) || ++u->n_pages > PAGES_MAX || !u->pages) {
		tools_failed(u, "unavailable", "the MCP server's list of tools is invalid");
		return;
	}
	add_tools(u, tools);
	if (cursor) {
		ask_page(u, cursor);
		return;
	}
	keep(u, json_integer_value(ttl), json_is_integer(ttl));
	calls_dispatch(u);
}
