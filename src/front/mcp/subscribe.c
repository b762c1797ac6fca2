/* SPDX-License-Identifier: Apache-2.0 */
/*
 * subscribe.c - subscriptions/listen, and notifications of changes to subscribers.
 *
 * A subscription is a call that is not answered until it ends. The first notification lists
 * the honoured parts of the request; every notification carries the request's id. A client that
 * does not read loses its subscription, and may ask again.
 */
#include "front/mcp/subscribe.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/list.h"
#include "front/mcp/call.h"
#include "front/mcp/mcp.h"
#include "front/mcp/resources.h"
#include "front/mcp/session.h"
#include "front/mcp/task.h"
#include "front/mcp/tool.h"
#include "front/mcp/watch.h"
#include "front/support/daemon.h"
#include "front/support/json_alloc.h"

#define SUBSCRIPTIONS_MAX 1024u
#define SUBSCRIPTIONS_OWNER_MAX 64u
#define NAMES_MAX 256u /* addresses, tasks */
#define NOTE_MAX (16u << 20)
#define GATHER_NS (100 * CLOCK_NS_PER_MS)

struct mcp_subscription {
	struct mcp_call *call;
	struct mcp_subscription *prev, *next;
	unsigned int lists; /* bits by enum mcp_list */
	uint64_t tools;     /* of its owner, when it was told last (mcp_tools_hash()) */
	bool stale;         /* its resources are others, and it was not told yet */
	json_t *uris, *tasks;
};

static const struct list {
	const char *wanted, *changed;
} lists[MCP_LISTS_] = {
	[MCP_LIST_TOOLS] = { "toolsListChanged", "notifications/tools/list_changed" },
	[MCP_LIST_PROMPTS] = { "promptsListChanged", "notifications/prompts/list_changed" },
	[MCP_LIST_RESOURCES] = { "resourcesListChanged", "notifications/resources/list_changed" },
};

/* ---- one ----------------------------------------------------------------------------------- */

static void forget(struct mcp_subscription *s)
{
	struct mcp *mcp = s->call->mcp;

	LIST_DROP(mcp->subscriptions, s);
	mcp->n_subscriptions--;
	json_decref(s->uris);
	json_decref(s->tasks);
	free(s);
	mcp_watches_sweep(mcp);
}

static void on_cancel(struct mcp_call *c)
{
	forget(c->work);
}

static void finish(struct mcp_subscription *s)
{
	struct mcp_call *c = s->call;

	forget(s);
	mcp_answer_empty(c);
}

/* @params: an object; stolen. */
static void tell(struct mcp_subscription *s, const char *method, json_t *params)
{
	_buf_ struct buf b = BUF_INIT(NOTE_MAX);
	json_t *meta = json_object();

	(void)json_object_set(meta, MCP_META_SUBSCRIPTION, s->call->m.id);
	(void)json_object_set_new(params, "_meta", meta);
	json_alloc_dump(&b, params);
	json_decref(params);
	if (!b.err)
		mcp_notify(s->call, method, &b);
	if (s->call->line->congested && s->call->line->congested(s->call))
		finish(s);
}

/* ---- subscriptions/listen ------------------------------------------------------------------ */

static bool has(const json_t *names, const char *name)
{
	const json_t *one;
	size_t i;

	json_array_foreach(names, i,
			   one) if (strcmp(json_string_value(one), name) == 0) return true;
	return false;
}

/* The strings of an array, as far as they are wanted. False: it is no array, or too long. */
static bool take_names(const json_t *from, const char *key, json_t *ret)
{
	const json_t *all = json_object_get(from, key), *one;
	size_t i;

	if (!all)
		return true;
	if (!json_is_array(all) || json_array_size(all) > NAMES_MAX)
		return false;
	json_array_foreach(all, i, one)
	{
		if (!json_is_string(one))
			return false;
		(void)json_array_append_new(ret, json_string(json_string_value(one)));
	}
	return true;
}

static void keep_own_tasks(const struct mcp_call *c, json_t *names)
{
	bool may = mcp_capable(c, "extensions", MCP_TASKS);

	for (size_t i = json_array_size(names); i-- > 0;) {
		const char *id = json_string_value(json_array_get(names, i));

		if (!may || !mcp_task_find(c->mcp, c->owner, id))
			(void)json_array_remove(names, i);
	}
}

/* Watch the resources whose changes can only be seen by watching. */
static void watch_files(const struct mcp_call *c, const json_t *uris)
{
	const json_t *one;
	size_t i;

	json_array_foreach(uris, i, one)
	{
		const struct mcp_resource *r = mcp_resource_find(json_string_value(one));

		if (r && r->watched)
			mcp_watch_begin(c->mcp, c->owner, json_string_value(one), NULL, NULL);
	}
}

static json_t *honoured(const struct mcp_subscription *s)
{
	json_t *ret = json_object();

	for (size_t i = 0; i < MCP_LISTS_; i++)
		if (s->lists & 1u << i)
			(void)json_object_set_new(ret, lists[i].wanted, json_true());
	if (json_array_size(s->uris))
		(void)json_object_set(ret, "resourceSubscriptions", s->uris);
	if (json_array_size(s->tasks))
		(void)json_object_set(ret, "taskIds", s->tasks);
	return ret;
}

static size_t count(const struct mcp_call *c)
{
	size_t n = 0;

	for (struct mcp_subscription *s = c->mcp->subscriptions; s; s = s->next)
		n += strcmp(s->call->owner, c->owner) == 0;
	return n;
}

static struct mcp_subscription *make(struct mcp_call *c, const json_t *wanted)
{
	struct mcp *m = c->mcp;
	struct mcp_subscription *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->call = c;
	s->tools = mcp_tools_hash(c->mcp, c->owner);
	s->uris = json_array();
	s->tasks = json_array();
	for (size_t i = 0; i < MCP_LISTS_; i++)
		if (mcp_list_lives(c->mcp, (enum mcp_list)i) &&
		    json_is_true(json_object_get(wanted, lists[i].wanted)))
			s->lists |= 1u << i;
	LIST_PUSH(m->subscriptions, s);
	m->n_subscriptions++;
	return s;
}

void mcp_method_listen(struct mcp_call *c)
{
	json_t *wanted = json_object_get(c->m.params, "notifications");
	struct mcp_subscription *s;

	if (!json_is_object(wanted)) {
		mcp_fail(c, MCP_INVALID_PARAMS, "params.notifications must be an object");
		return;
	}
	if (c->mcp->n_subscriptions >= SUBSCRIPTIONS_MAX || count(c) >= SUBSCRIPTIONS_OWNER_MAX ||
	    !(s = make(c, wanted))) {
		mcp_fail(c, MCP_INTERNAL, "there are too many subscriptions: end some");
		return;
	}
	if (!take_names(wanted, "resourceSubscriptions", s->uris) ||
	    !take_names(wanted, "taskIds", s->tasks)) {
		forget(s);
		mcp_fail(c, MCP_INVALID_PARAMS,
			 "resourceSubscriptions and taskIds must be arrays of at most %u strings",
			 NAMES_MAX);
		return;
	}
	watch_files(c, s->uris);
	keep_own_tasks(c, s->tasks);
	c->listens = true;
	c->work = s;
	c->cancel = on_cancel;
	tell(s, "notifications/subscriptions/acknowledged",
	     json_pack("{s:o}", "notifications", honoured(s)));
}

void mcp_subscriptions_end(struct mcp *mcp)
{
	while (mcp->subscriptions)
		finish(mcp->subscriptions);
}

static bool is_for(const char *owner, const char *listener)
{
	return !owner || strcmp(owner, listener) == 0;
}

/* ---- lists --------------------------------------------------------------------------------- */

bool mcp_list_lives(const struct mcp *mcp, enum mcp_list list)
{
	switch (list) {
	case MCP_LIST_RESOURCES: /* sessions are among them */
		return true;
	case MCP_LIST_TOOLS: /* a policy may be replaced */
		return mcp->daemon->config.policy || mcp_additions.tools;
	default:
		return mcp_additions.prompts;
	}
}

static void on_news(struct timer *t)
{
	struct mcp *mcp = t->arg;
	const struct list *l = &lists[MCP_LIST_RESOURCES];

	for (struct mcp_subscription *s = mcp->subscriptions, *next; s; s = next) {
		bool stale = s->stale;

		next = s->next;
		s->stale = false;
		if (stale)
			tell(s, l->changed, json_object());
	}
	for (struct mcp_session *s = mcp->sessions; s; s = s->next) {
		if (s->stale)
			mcp_session_send(s, l->changed, NULL);
		s->stale = false;
	}
}

void mcp_sandboxes_changed(struct mcp *mcp, const char *owner)
{
	bool any = false;

	for (struct mcp_subscription *s = mcp->subscriptions; s; s = s->next)
		if (s->lists & 1u << MCP_LIST_RESOURCES && is_for(owner, s->call->owner))
			any = s->stale = true;
	for (struct mcp_session *s = mcp->sessions; s; s = s->next)
		if (s->initialized && s->outlet && is_for(owner, s->owner))
			any = s->stale = true;
	if (!any || mcp->news.loop)
		return;
	mcp->news.fn = on_news;
	mcp->news.arg = mcp;
	timer_after(mcp->loop, &mcp->news, GATHER_NS);
}

void mcp_policy_changed(struct mcp *mcp)
{
	const struct list *l = &lists[MCP_LIST_TOOLS];

	for (struct mcp_subscription *s = mcp->subscriptions, *next; s; s = next) {
		uint64_t now = mcp_tools_hash(mcp, s->call->owner);
		bool other = now != s->tools && s->lists & 1u << MCP_LIST_TOOLS;

		next = s->next;
		s->tools = now;
		if (other)
			tell(s, l->changed, json_object());
	}
	for (struct mcp_session *s = mcp->sessions; s; s = s->next) {
		uint64_t now = mcp_tools_hash(mcp, s->owner);

		if (now != s->tools && s->initialized)
			mcp_session_send(s, l->changed, NULL);
		s->tools = now;
	}
}

/* ---- changes ------------------------------------------------------------------------------- */

void mcp_list_changed(struct mcp *mcp, enum mcp_list list)
{
	for (struct mcp_subscription *s = mcp->subscriptions, *next; s; s = next) {
		next = s->next;
		if (s->lists & 1u << list)
			tell(s, lists[list].changed, json_object());
	}
	for (struct mcp_session *s = mcp->sessions; s; s = s->next)
		mcp_session_send(s, lists[list].changed, NULL);
}

void mcp_resource_updated(struct mcp *mcp, const char *owner, const char *uri)
{
	_buf_ struct buf b = BUF_INIT(NOTE_MAX);
	json_t *params = json_pack("{s:s}", "uri", uri);

	json_alloc_dump(&b, params);
	for (struct mcp_subscription *s = mcp->subscriptions, *next; s; s = next) {
		next = s->next;
		if (is_for(owner, s->call->owner) && has(s->uris, uri))
			tell(s, "notifications/resources/updated", json_copy(params));
	}
	json_decref(params);
	for (struct mcp_session *s = mcp->sessions; s; s = s->next)
		if (is_for(owner, s->owner) && json_object_get(s->subscriptions, uri))
			mcp_session_send(s, "notifications/resources/updated", &b);
}

bool mcp_resource_wanted(const struct mcp *mcp, const char *owner, const char *uri)
{
	for (const struct mcp_subscription *s = mcp->subscriptions; s; s = s->next)
		if (is_for(owner, s->call->owner) && has(s->uris, uri))
			return true;
	for (const struct mcp_session *s = mcp->sessions; s; s = s->next)
		if (is_for(owner, s->owner) && json_object_get(s->subscriptions, uri))
			return true;
	return false;
}

void mcp_task_told(struct mcp *mcp, const char *owner, const char *id, json_t *task)
{
	for (struct mcp_subscription *s = mcp->subscriptions, *next; s; s = next) {
		next = s->next;
		if (is_for(owner, s->call->owner) && has(s->tasks, id))
			tell(s, "notifications/tasks", json_copy(task));
	}
	json_decref(task);
}
