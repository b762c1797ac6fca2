/* SPDX-License-Identifier: Apache-2.0 */
/* handle_workspaces.c - /v1/workspaces: make, list, describe, remove. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "front/api/handlers.h"
#include "front/http/reply.h"
#include "front/http/serve.h"
#include "front/operations/services.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/sandbox.h"
#include "front/workspaces/workspaces.h"
#include "store/store.h"

#define ONE_MAX (1u << 20)
#define LIST_MAX (16u << 20)
#define PAGE 100

/* A request that waits for the workspace store. */
struct store_wait {
	struct workspace_store_call call;
	struct services *services;
	struct http_exchange *x; /* NULL: the client is gone */
	struct workspace wanted; /* to be made; of other requests only key, owner and name */
};

static struct workspace *own_workspace(struct services *services, struct http_exchange *x)
{
	struct workspace *w =
		workspaces_find(services->workspaces, context_of(x)->owner, context_param(x, 0));

	if (!w)
		reply_error(x, 404, "no_such_workspace", "name", "see GET /v1/workspaces",
			    "there is no such workspace: '%s'", context_param(x, 0));
	return w;
}

static void reply_workspace(struct services *services, struct http_exchange *x, int status,
			    const struct workspace *w, const struct workspace_store_reply *r)
{
	struct reply answer;

	workspace_json(services->workspaces, w, r, reply_begin(&answer, ONE_MAX));
	reply_end(&answer, x, status);
}

/* ---- waiting for the workspace store ------------------------------------------------------- */

static void on_gone(struct request_context *v)
{
	((struct store_wait *)v->work)->x = NULL;
	v->work = NULL;
}

static void finish(struct store_wait *n)
{
	json_decref(n->wanted.labels);
	free(n);
}

static void failed(struct http_exchange *x, const char *message)
{
	if (x)
		reply_retry(x, 503, 1, "workspace_failed", "see the daemon's log", "%s", message);
}

/* False: it was answered. */
static bool run(struct services *services, struct http_exchange *x, const struct workspace *w,
		struct workspace_store_req *q,
		void (*fn)(struct workspace_store_call *, const struct workspace_store_reply *,
			   int *))
{
	struct store_wait *n = calloc(1, sizeof(*n));

	if (n) {
		n->services = services;
		n->x = x;
		n->wanted = *w;
		json_incref(n->wanted.labels);
		n->call.fn = fn;
		n->call.arg = n;
	}
	if (!n || workspace_store_ask(&services->workspaces->store, &n->call, q, -1) < 0) {
		if (n)
			finish(n);
		failed(x, "the workspace store does not answer");
		return false;
	}
	context_wait(x, n, on_gone);
	return true;
}

/* ---- making -------------------------------------------------------------------------------- */

static bool same(const struct workspace *a, const struct workspace *b)
{
	bool none = !json_object_size(a->labels) && !json_object_size(b->labels);

	return a->quota_bytes == b->quota_bytes && a->quota_files == b->quota_files &&
	       (none || json_equal(a->labels, b->labels));
}

static void again(struct services *services, struct http_exchange *x, const struct workspace *w,
		  const struct workspace *wanted)
{
	if (same(w, wanted))
		reply_workspace(services, x, 200, w, NULL);
	else
		reply_error(x, 409, "workspace_exists", "name",
			    "take another name, or ask for the same quota and labels",
			    "you have a workspace of this name, with another quota or labels");
}

static void drop(struct services *services, const char *key)
{
	struct workspace_store_req q = { .op = WORKSPACE_STORE_REMOVE };

	(void)snprintf(q.key, sizeof(q.key), "%s", key);
	(void)workspace_store_ask(&services->workspaces->store, NULL, &q, -1);
}

static void on_created(struct workspace_store_call *c, const struct workspace_store_reply *r,
		       int *fd)
{
	struct store_wait *n = c->arg;
	struct http_exchange *x = context_done(n->x);
	const struct workspace *w = NULL;
	struct refusal why;

	(void)fd;
	if (r->code < 0) {
		failed(x, r->msg);
	} else if ((w = workspaces_find(n->services->workspaces, n->wanted.owner,
					n->wanted.name))) {
		drop(n->services, r->key); /* another request made it meanwhile */
		if (x)
			again(n->services, x, w, &n->wanted);
	} else {
		(void)snprintf(n->wanted.key, sizeof(n->wanted.key), "%.32s", r->key);
		n->wanted.generation = r->generation;
		n->wanted.volume = r->volume;
		w = workspaces_add(n->services->workspaces, &n->wanted, &why);
		if (!w)
			drop(n->services, r->key);
		if (x && w)
			reply_workspace(n->services, x, 201, w, NULL);
		else if (x)
			reply_refusal(x, &why);
	}
	finish(n);
}

static size_t n_of(const struct services *services, const char *owner)
{
	size_t n = 0;

	for (const struct workspace *w = services->workspaces->all; w; w = w->next)
		n += strcmp(w->owner, owner) == 0;
	return n;
}

/* Labels that the store cannot keep. */
static bool too_large(const json_t *labels)
{
	return labels && json_dumpb(labels, NULL, 0, JSON_COMPACT) > STORE_JSON_MAX;
}

void handle_workspace_create(struct services *services, struct http_exchange *x)
{
	struct workspace_store_req q = { .op = WORKSPACE_STORE_CREATE };
	struct workspace wanted = { 0 };

	(void)snprintf(wanted.owner, sizeof(wanted.owner), "%s", context_of(x)->owner);
	(void)snprintf(wanted.name, sizeof(wanted.name), "%s", context_text(x, "name"));
	wanted.quota_bytes = context_number(x, "quota_mib", WORKSPACE_BYTES >> 20) << 20;
	wanted.quota_files = context_number(x, "quota_files", WORKSPACE_FILES);
	wanted.labels = json_object_get(context_of(x)->fields, "labels");
	q.max_bytes = wanted.quota_bytes;
	q.max_files = wanted.quota_files;
	const struct workspace *w =
		workspaces_find(services->workspaces, wanted.owner, wanted.name);

	if (too_large(wanted.labels))
		reply_error(x, 422, "out_of_range", "labels", "use fewer, or shorter ones",
			    "'labels' are larger than 64 KiB");
	else if (w)
		again(services, x, w, &wanted);
	else if (n_of(services, wanted.owner) >= WORKSPACES_MAX)
		reply_retry(x, 429, 60, "too_many_workspaces", "remove some",
			    "you have %u workspaces already", WORKSPACES_MAX);
	else
		(void)run(services, x, &wanted, &q, on_created);
}

/* ---- looking ------------------------------------------------------------------------------- */

static void on_looked(struct workspace_store_call *c, const struct workspace_store_reply *r,
		      int *fd)
{
	struct store_wait *n = c->arg;
	struct http_exchange *x = context_done(n->x);
	const struct workspace *w =
		workspaces_find(n->services->workspaces, n->wanted.owner, n->wanted.name);

	(void)fd;
	if (r->code < 0)
		failed(x, r->msg);
	else if (x && w)
		reply_workspace(n->services, x, 200, w, r);
	else if (x)
		reply_error(x, 404, "no_such_workspace", "name", NULL,
			    "there is no such workspace");
	finish(n);
}

void handle_workspace_get(struct services *services, struct http_exchange *x)
{
	const struct workspace *w = own_workspace(services, x);
	struct workspace_store_req q = { .op = WORKSPACE_STORE_LOOK,
					 .flags = WORKSPACE_STORE_COUNT };

	if (!w)
		return;
	memcpy(q.key, w->key, sizeof(w->key));
	(void)run(services, x, w, &q, on_looked);
}

static int by_name(const void *a, const void *b)
{
	const struct workspace *const *s = a, *const *t = b;

	return strcmp((*s)->name, (*t)->name);
}

void handle_workspace_list(struct services *services, struct http_exchange *x)
{
	struct reply answer;
	const json_t *labels = json_object_get(context_of(x)->fields, "label");
	const char *cursor = context_text(x, "cursor");
	size_t most = context_number(x, "limit", PAGE), n = 0;
	const struct workspace **all =
		calloc(n_of(services, context_of(x)->owner) + 1, sizeof(struct workspace *));

	for (const struct workspace *w = services->workspaces->all; all && w; w = w->next)
		if (!w->removing && strcmp(w->owner, context_of(x)->owner) == 0 &&
		    (!cursor || strcmp(w->name, cursor) > 0) && labels_match(w->labels, labels))
			all[n++] = w;
	if (n > 1)
		qsort(all, n, sizeof(struct workspace *), by_name);
	struct json *j = reply_object(&answer, LIST_MAX);

	json_member_array(j, "workspaces");
	for (size_t i = 0; i < n && i < most; i++)
		workspace_json(services->workspaces, all[i], NULL, j);
	json_array_end(j);
	if (n > most)
		json_member_str(j, "next_cursor", all[most - 1]->name);
	free(all);
	reply_end(&answer, x, 200);
}

/* ---- removing ------------------------------------------------------------------------------ */

static void on_removed(struct workspace_store_call *c, const struct workspace_store_reply *r,
		       int *fd)
{
	struct store_wait *n = c->arg;
	struct http_exchange *x = context_done(n->x);

	(void)fd;
	for (struct workspace *w = n->services->workspaces->all; w; w = w->next)
		if (strcmp(w->key, n->wanted.key) == 0) {
			w->removing = false;
			if (r->code == 0 || r->code == -ENOENT)
				workspaces_forget(n->services->workspaces, w);
			break;
		}
	if (r->code < 0 && r->code != -ENOENT)
		failed(x, r->msg);
	else if (x)
		reply_empty(x, 204);
	finish(n);
}

void handle_workspace_remove(struct services *services, struct http_exchange *x)
{
	struct workspace *w = own_workspace(services, x);
	const struct sandbox *s = w ? workspaces_user(services->workspaces, w, NULL) : NULL;
	struct workspace_store_req q = { .op = WORKSPACE_STORE_REMOVE };

	if (!w)
		return;
	if (s) {
		reply_error(x, 409, "workspace_busy", "name", "remove or stop it first",
			    "sandbox '%s' uses it", s->name);
		return;
	}
	const struct workspace_backing *b = services->workspaces->backing;

	if (b && b->backs(services->buckets, w) && b->is_ahead(services->buckets, w)) {
		reply_error(x, 409, "workspace_busy", "name",
			    "wait until GET /v1/workspaces/{name} says \"synced\"",
			    "what changed in it is not in its bucket yet");
		return;
	}
	memcpy(q.key, w->key, sizeof(w->key));
	w->removing = run(services, x, w, &q, on_removed);
}
