/* SPDX-License-Identifier: Apache-2.0 */
/* resources.c - resources/list, resources/templates/list, resources/read, and the legacy
 * subscriptions. */
#include <string.h>

#include "base/fd.h"
#include "front/mcp/call.h"
#include "front/mcp/input_request.h"
#include "front/mcp/mcp.h"
#include "front/mcp/resources.h"
#include "front/mcp/session.h"
#include "front/mcp/watch.h"
#include "front/support/refusal.h"

#define LIST_TTL_MS (300u * 1000u)
#define SUBSCRIPTIONS_MAX 256u

/* The i-th row that this daemon offers, NULL after the last. */
static const struct mcp_resource *row_at(size_t i)
{
	const struct mcp_resource *const tables[] = { mcp_resources_sandboxes, mcp_resources_skills,
						      mcp_additions.resources };

	for (size_t n = 0; n < ARRAY_SIZE(tables); n++)
		for (const struct mcp_resource *r = tables[n]; r && r->uri; r++)
			if (i-- == 0)
				return r;
	return NULL;
}

const struct mcp_resource *mcp_resource_find(const char *uri)
{
	const struct mcp_resource *r;

	for (size_t i = 0; (r = row_at(i)); i++)
		if (r->match ? r->match(uri) : strcmp(r->uri, uri) == 0)
			return r;
	return NULL;
}

const struct mcp_resource *mcp_template_find(const char *uri_template)
{
	const struct mcp_resource *r;

	for (size_t i = 0; (r = row_at(i)); i++)
		if (r->match && strcmp(r->uri, uri_template) == 0)
			return r;
	return NULL;
}

/* ---- lists --------------------------------------------------------------------------------- */

static void write_row(struct json *j, const struct mcp_resource *r)
{
	json_object_begin(j);
	json_member_str(j, r->match ? "uriTemplate" : "uri", r->uri);
	json_member_str(j, "name", r->name);
	json_member_str(j, "title", r->title);
	json_member_str(j, "description", r->description);
	if (r->mime)
		json_member_str(j, "mimeType", r->mime);
	json_object_end(j);
}

static void list(struct mcp_call *c, const char *key, bool templates)
{
	const struct mcp_resource *r;
	struct mcp_answer a;
	struct mcp_page page;

	if (!mcp_page_begin(c, &page))
		return;
	mcp_answer_begin(c, &a);
	json_member_array(&a.j, key);
	for (size_t i = 0; (r = row_at(i)); i++) {
		if (!r->match != templates && mcp_page_takes(&page))
			write_row(&a.j, r);
		if (!templates && r->list)
			r->list(c, &a.j, &page);
	}
	json_array_end(&a.j);
	mcp_page_end(&page, &a.j);
	mcp_answer_cache(c, &a, templates ? LIST_TTL_MS : 0, templates);
	mcp_answer_end(c, &a);
}

void mcp_method_resources_list(struct mcp_call *c)
{
	list(c, "resources", false);
}

void mcp_method_templates_list(struct mcp_call *c)
{
	list(c, "resourceTemplates", true);
}

/* ---- reading ------------------------------------------------------------------------------- */

static void begin(struct mcp_call *c, struct mcp_answer *a, const char *uri, const char *mime)
{
	mcp_answer_begin(c, a);
	json_member_array(&a->j, "contents");
	json_object_begin(&a->j);
	json_member_str(&a->j, "uri", uri);
	if (mime)
		json_member_str(&a->j, "mimeType", mime);
}

static void finish(struct mcp_call *c, struct mcp_answer *a, uint64_t ttl_ms)
{
	json_object_end(&a->j);
	json_array_end(&a->j);
	mcp_answer_cache(c, a, ttl_ms, false);
	mcp_answer_end(c, a);
}

void mcp_resource_text(struct mcp_call *c, const char *uri, const char *mime, const char *text,
		       size_t len, uint64_t ttl_ms)
{
	struct mcp_answer a;

	begin(c, &a, uri, mime);
	json_key(&a.j, "text");
	(void)json_strn(&a.j, text, len);
	finish(c, &a, ttl_ms);
}

void mcp_resource_blob(struct mcp_call *c, const char *uri, const char *mime, const void *data,
		       size_t len, uint64_t ttl_ms)
{
	struct mcp_answer a;

	begin(c, &a, uri, mime);
	json_key(&a.j, "blob");
	json_base64(&a.j, data, len);
	finish(c, &a, ttl_ms);
}

void mcp_resource_missing(struct mcp_call *c, const char *uri)
{
	mcp_fail_data(c, 200, c->era == MCP_MODERN ? MCP_INVALID_PARAMS : MCP_NO_RESOURCE,
		      json_pack("{s:s}", "uri", uri), "there is no resource %.200s", uri);
}

/* params.uri; NULL: answered. */
static const char *given_uri(struct mcp_call *c)
{
	const char *uri = json_string_value(json_object_get(c->m.params, "uri"));

	if (!uri)
		mcp_fail(c, MCP_INVALID_PARAMS, "params.uri must be a string");
	return uri;
}

void mcp_method_resources_read(struct mcp_call *c)
{
	const char *uri = given_uri(c);
	const struct mcp_resource *r = uri ? mcp_resource_find(uri) : NULL;

	if (!uri)
		return;
	if (!r)
		mcp_resource_missing(c, uri);
	else if (mcp_inputs_check(c))
		r->read(c, uri);
}

/* ---- legacy subscriptions ------------------------------------------------------------------ */

static void on_watched(void *arg, const struct refusal *why)
{
	struct mcp_call *c = arg;
	const char *uri = json_string_value(json_object_get(c->m.params, "uri"));

	c->cancel = NULL;
	if (!why) {
		mcp_answer_empty(c);
		return;
	}
	(void)json_object_del(c->session->subscriptions, uri);
	if (why->kind == REFUSAL_TOO_MANY)
		mcp_fail(c, MCP_INVALID_REQUEST, "%s", why->message);
	else
		mcp_resource_missing(c, uri);
}

static void cancel_watch(struct mcp_call *c)
{
	mcp_watch_forget(c->mcp, c);
}

void mcp_method_resources_subscribe(struct mcp_call *c)
{
	const char *uri = given_uri(c);
	const struct mcp_resource *r = uri ? mcp_resource_find(uri) : NULL;
	struct mcp_session *s = c->session;

	if (!uri)
		return;
	if (!r) {
		mcp_resource_missing(c, uri);
		return;
	}
	if (!s->subscriptions)
		s->subscriptions = json_object();
	if (json_object_size(s->subscriptions) >= SUBSCRIPTIONS_MAX) {
		mcp_fail(c, MCP_INVALID_REQUEST, "this session has %u subscriptions: end some",
			 SUBSCRIPTIONS_MAX);
		return;
	}
	(void)json_object_set_new(s->subscriptions, uri, json_true());
	if (!r->watched) {
		mcp_answer_empty(c);
		return;
	}
	c->cancel = cancel_watch;
	mcp_watch_begin(c->mcp, c->owner, uri, on_watched, c);
}

void mcp_method_resources_unsubscribe(struct mcp_call *c)
{
	const char *uri = given_uri(c);

	if (!uri)
		return;
	(void)json_object_del(c->session->subscriptions, uri);
	mcp_watches_sweep(c->mcp);
	mcp_answer_empty(c);
}
