/* SPDX-License-Identifier: Apache-2.0 */
/* watch.c - A file call that lasts, and the resource that it is about. */
#include "front/mcp/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "front/files/files.h"
#include "front/mcp/mcp.h"
#include "front/mcp/subscribe.h"
#include "mcp/uri.h"

#define WATCHES_MAX 256u
#define WATCHES_OWNER_MAX 32u
#define GATHER_NS (100 * CLOCK_NS_PER_MS)

struct mcp_watch {
	struct mcp *mcp;
	struct mcp_watch *next;
	struct file_call call; /* of the directory that it is in */
	char owner[OWNER_MAX];
	char *uri, *name; /* in there; empty: the directory itself */
	bool ready;
	mcp_watched_fn *fn; /* waits to hear that */
	void *arg;
	struct timer gather;
	struct deferred reaper;
};

static void reap(struct deferred *d)
{
	struct mcp_watch *w = d->arg;

	free(w->uri);
	free(w->name);
	free(w);
}

static void end(struct mcp_watch *w)
{
	for (struct mcp_watch **p = &w->mcp->watches; *p; p = &(*p)->next)
		if (*p == w) {
			*p = w->next;
			w->mcp->n_watches--;
			break;
		}
	timer_cancel(&w->gather);
	file_call_release(&w->call);
	w->reaper.fn = reap;
	w->reaper.arg = w;
	loop_defer(w->mcp->loop, &w->reaper);
}

static void told(struct mcp_watch *w, const struct refusal *why)
{
	mcp_watched_fn *fn = w->fn;

	w->ready = true;
	w->fn = NULL;
	if (fn)
		fn(w->arg, why);
}

static void on_gathered(struct timer *t)
{
	struct mcp_watch *w = t->arg;

	mcp_resource_updated(w->mcp, w->owner, w->uri);
}

/* The first that it says: it watches. */
static void on_stat(struct file_call *c, const struct files_stat *st, struct files_text name,
		    struct files_text target)
{
	struct mcp_watch *w = c->owner;

	(void)st;
	(void)name;
	(void)target;
	if (!w->ready)
		told(w, NULL);
}

static void on_event(struct file_call *c, const struct files_event *ev, struct files_text name,
		     struct files_text from)
{
	struct mcp_watch *w = c->owner;
	size_t len = strlen(w->name);
	bool mine = len == 0 || ev->kind == FILES_E_OVERFLOW ||
		    (name.len == len && memcmp(name.data, w->name, len) == 0) ||
		    (from.len == len && memcmp(from.data, w->name, len) == 0);

	if (mine && !w->gather.loop) {
		w->gather.fn = on_gathered;
		w->gather.arg = w;
		timer_after(w->mcp->loop, &w->gather, GATHER_NS);
	}
}

/* The directory was never there, or the cell is over: there will be no news. */
static void on_done(struct file_call *c)
{
	struct mcp_watch *w = c->owner;

	if (!w->ready)
		told(w, &c->refusal);
	end(w);
}

static const struct file_call_ops call_ops = { .stat = on_stat,
					       .event = on_event,
					       .done = on_done };

/* A path that ends in a slash, or has nothing in it, is a directory. */
static void split(struct mcp_watch *w, const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t dir = slash ? (size_t)(slash - path) : 0;

	w->name = strdup(slash ? slash + 1 : path);
	(void)snprintf(w->call.path, sizeof(w->call.path), "%.*s",
		       slash ? (int)(dir ? dir : 1) : 10, slash ? path : "/workspace");
}

static struct mcp_watch *find(struct mcp *mcp, const char *owner, const char *uri)
{
	struct mcp_watch *w = mcp->watches;

	while (w && (strcmp(w->uri, uri) != 0 || strcmp(w->owner, owner) != 0))
		w = w->next;
	return w;
}

static size_t count_of(const struct mcp *mcp, const char *owner)
{
	size_t n = 0;

	for (const struct mcp_watch *w = mcp->watches; w; w = w->next)
		n += strcmp(w->owner, owner) == 0;
	return n;
}

/* NULL with @why. */
static struct mcp_watch *make(struct mcp *mcp, const char *owner, const char *uri,
			      const struct mcp_uri *at, struct refusal *why)
{
	struct mcp_watch *w;

	(void)refusal_set(why, REFUSAL_TOO_MANY, "too_many_watches", NULL, NULL,
			  "too many files are watched already (an owner may watch %u, and all "
			  "owners %u): end some subscriptions",
			  WATCHES_OWNER_MAX, WATCHES_MAX);
	if (mcp->n_watches >= WATCHES_MAX || count_of(mcp, owner) >= WATCHES_OWNER_MAX ||
	    !(w = calloc(1, sizeof(*w))))
		return NULL;
	w->uri = strdup(uri);
	split(w, at->path);
	if (!w->uri || !w->name) {
		reap(&(struct deferred){ .arg = w });
		return NULL;
	}
	(void)snprintf(w->owner, sizeof(w->owner), "%s", owner);
	w->mcp = mcp;
	w->next = mcp->watches;
	mcp->watches = w;
	mcp->n_watches++;
	w->call.owner = w;
	w->call.ops = &call_ops;
	w->call.sandboxes = mcp->sandboxes;
	w->call.patient = true;
	w->call.q.op = FILES_WATCH;
	return w;
}

void mcp_watch_begin(struct mcp *mcp, const char *owner, const char *uri, mcp_watched_fn *fn,
		     void *arg)
{
	struct refusal why = { .kind = REFUSAL_NOT_FOUND,
			       .code = "no_such_resource",
			       .message = "there is no such resource" };
	struct mcp_uri at;
	struct sandbox *s = mcp_uri_parse(uri, &at) ? sandbox_find(mcp->sandboxes, owner, at.name) :
						      NULL;
	struct mcp_watch *w = find(mcp, owner, uri);

	if (w || !s || !(w = make(mcp, owner, uri, &at, &why))) {
		if (fn) /* one that is about to begin counts as begun */
			fn(arg, w ? NULL : &why);
		return;
	}
	w->fn = fn;
	w->arg = arg;
	file_call_run(&w->call, s);
}

void mcp_watch_forget(struct mcp *mcp, const void *arg)
{
	for (struct mcp_watch *w = mcp->watches; w; w = w->next)
		if (w->arg == arg)
			w->fn = NULL;
}

void mcp_watches_sweep(struct mcp *mcp)
{
	for (struct mcp_watch *w = mcp->watches, *next; w; w = next) {
		next = w->next;
		if (!w->fn && !mcp_resource_wanted(mcp, w->owner, w->uri))
			end(w);
	}
}
