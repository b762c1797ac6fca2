/* SPDX-License-Identifier: Apache-2.0 */
/* trees.c - The tables of trees and of their users, in memory and in the store. stock.c loads them
 * at a start, and removes old trees. */
#include "front/packages/trees.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "front/cell/image_use.h"
#include "front/packages/closure.h"
#include "front/packages/install.h"
#include "front/packages/packages.h"
#include "front/packages/trees_int.h"
#include "front/sandbox/sandbox.h"
#include "front/sandbox/sandboxes.h"
#include "front/support/json_alloc.h"
#include "front/support/log.h"
#include "front/support/time_text.h"
#include "store/store.h"

#define FRESH_MS (24 * 3600 * UINT64_C(1000)) /* a result that may change: of the last day */

void trees_complain(const struct err *e)
{
	log_event(LOG_LEVEL_ERROR, "store", F_STR("why", e->msg));
}

/* ---- store --------------------------------------------------------------------------------- */

int tree_put(struct packages *packages, const struct tree *t, struct err *e)
{
	char *list = json_dumps(t->packages, JSON_COMPACT);
	const struct store_tree row = {
		.key = t->key,
		.sha256 = t->sha256,
		.language = ecosystem_name(t->eco),
		.request = t->request,
		.packages = list,
		.installer = t->installer,
		.seal = t->seal,
		.image = t->image,
		.context = t->context,
		.exact = t->exact,
		.bytes = t->bytes,
		.files = t->files,
		.created_at = (int64_t)t->created_ms,
		.used_at = (int64_t)t->used_ms,
	};
	int r = list ? store_tree_put(packages->daemon->store, &row, e) :
		       err_set(e, -ENOMEM, "record a package tree");

	json_alloc_free(list);
	return r;
}

void tree_free(struct tree *t)
{
	json_decref(t->packages);
	free(t->request);
	free(t);
}

void tree_add_use(struct trees *all, const char *holder, struct tree *t)
{
	struct tree_use *u = calloc(1, sizeof(*u));

	if (!u)
		return;
	(void)snprintf(u->holder, sizeof(u->holder), "%s", holder);
	u->tree = t;
	u->next = all->uses;
	all->uses = u;
	t->users++;
	all->changes++;
}

/* The uses by @holder (NULL: by anybody) of @t (NULL: of any tree). Return: whether there were any.
 */
static bool drop_uses(struct trees *all, const char *holder, const struct tree *t)
{
	bool any = false;

	for (struct tree_use **at = &all->uses; *at;) {
		struct tree_use *u = *at;

		if ((holder && strcmp(u->holder, holder) != 0) || (t && u->tree != t)) {
			at = &u->next;
			continue;
		}
		*at = u->next;
		u->tree->users--;
		u->tree->used_ms = time_now_ms();
		free(u);
		any = true;
	}
	return any;
}

void tree_forget(struct packages *packages, struct tree *gone)
{
	struct trees *all = &packages->trees;
	struct err e = { 0 };

	(void)drop_uses(all, NULL, gone);
	for (struct tree **at = &all->all; *at; at = &(*at)->next)
		if (*at == gone) {
			*at = gone->next;
			break;
		}
	all->bytes -= gone->bytes;
	all->changes++;
	if (store_tree_del(packages->daemon->store, gone->key, &e) < 0)
		trees_complain(&e);
	tree_free(gone);
}

/* ---- adding -------------------------------------------------------------------------------- */

void tree_drop_files(struct packages *packages, const char *key)
{
	struct package_store_req q = { .op = PACKAGE_STORE_DROP };

	(void)snprintf(q.key, sizeof(q.key), "%s", key);
	(void)package_store_ask(&packages->store, NULL, &q, -1);
}

/* The same request, of a sandbox of the same image. */
static bool is_for(const struct tree *t, const struct install *in)
{
	return t->eco == in->eco && strcmp(t->request, in->request) == 0 &&
	       strcmp(t->image, image_key(in->image)) == 0;
}

/* The packages beside which it was made decided its versions, and their builds may have run beside
 * it: so it is only for sandboxes that have requested them, too. */
static bool is_beside(const struct tree *t, const struct install *in)
{
	return strcmp(t->context, in->context) == 0;
}

static struct tree *same_content(struct trees *all, const struct install *in, const char *sha256)
{
	struct tree *t = all->all;

	while (t && (strcmp(t->sha256, sha256) != 0 || !is_for(t, in) || !is_beside(t, in)))
		t = t->next;
	return t;
}

static struct tree *make(const struct install *in, const struct package_store_reply *r)
{
	struct tree *t = calloc(1, sizeof(*t));

	if (!t || !(t->request = strdup(in->request))) {
		free(t);
		return NULL;
	}
	(void)snprintf(t->key, sizeof(t->key), "%.32s", r->key);
	(void)snprintf(t->sha256, sizeof(t->sha256), "%.64s", r->sha256);
	(void)snprintf(t->seal, sizeof(t->seal), "%.64s", r->seal);
	(void)snprintf(t->installer, sizeof(t->installer), "%s", in->installer);
	(void)snprintf(t->image, sizeof(t->image), "%s", image_key(in->image));
	memcpy(t->context, in->context, sizeof(t->context));
	t->eco = in->eco;
	t->exact = in->exact;
	t->packages = json_incref(in->closure);
	t->bytes = r->bytes;
	t->files = r->files;
	t->created_ms = t->used_ms = time_now_ms();
	return t;
}

struct tree *trees_add(struct packages *packages, const struct install *in,
		       const struct package_store_reply *r)
{
	struct trees *all = &packages->trees;
	struct tree *t = same_content(all, in, r->sha256);
	struct err e = { 0 };

	if (t) { /* fetched again because it was old, and still the same */
		tree_drop_files(packages, r->key);
		t->created_ms = t->used_ms = time_now_ms();
		if (tree_put(packages, t, &e) < 0)
			trees_complain(&e);
		return t;
	}
	t = make(in, r);
	if (!t || tree_put(packages, t, &e) < 0) {
		if (t) {
			trees_complain(&e);
			tree_free(t);
		}
		tree_drop_files(packages, r->key);
		return NULL;
	}
	t->next = all->all;
	all->all = t;
	all->bytes += t->bytes;
	return t;
}

/* ---- finding ------------------------------------------------------------------------------- */

/* An interpreter can have one version of a package. In javascript trees are independent, and there
 * are no pins. */
static bool agrees(const struct tree *t, const json_t *pins)
{
	size_t i;
	json_t *p;

	json_array_foreach(json_object_size(pins) ? t->packages : NULL, i, p)
	{
		const char *name = closure_text(p, "name");
		const json_t *have = name ? json_object_get(pins, name) : NULL;

		if (have && !json_equal(have, json_object_get(p, "version")))
			return false;
	}
	return true;
}

/* A tree that leans on packages of an image without a digest may miss them when that image changes
 * (host, with each upgrade of the machine). */
static bool is_lasting(const struct tree *t, const struct image_use *image)
{
	return t->exact &&
	       (image->digest[0] || closure_fetched(t->packages) == json_array_size(t->packages));
}

/* @s uses it already: the context was that of the time before. */
static bool is_of(const struct packages *packages, const struct tree *t, const struct sandbox *s)
{
	const struct tree_use *at = NULL;
	const struct tree *own = NULL;

	while (s && own != t && (own = trees_next(packages, s, &at)))
		;
	return s && own == t;
}

struct tree *trees_find(const struct install *in, const struct sandbox *s)
{
	uint64_t now = time_now_ms();

	for (struct tree *t = in->packages->trees.all; t; t = t->next)
		if (is_for(t, in) && (is_beside(t, in) || is_of(in->packages, t, s)) &&
		    (is_lasting(t, in->image) || now < t->created_ms + FRESH_MS) &&
		    agrees(t, in->pins))
			return t;
	return NULL;
}

bool trees_fit(const struct tree *t, const struct sandbox *s)
{
	return strcmp(t->image, image_key(s->image)) == 0;
}

static bool is_holder(const struct tree_use *u, const struct sandbox *s)
{
	return trees_fit(u->tree, s) &&
	       strcmp(u->holder + 2, u->holder[0] == 's' ? s->id : s->owner) == 0;
}

/* ---- using --------------------------------------------------------------------------------- */

/* Code may request the same as often as it likes: a request that changes nothing is not written. */
static bool is_first(const struct packages *packages, const struct sandbox *s, const struct tree *t)
{
	const struct tree_use *at = NULL;

	return s && trees_next(packages, s, &at) == t && at->holder[0] == 's';
}

/* The latest request comes first, also for a tree that was in use: another version may have come
 * since. */
bool trees_use(struct packages *packages, const struct sandbox *s, const char *owner,
	       struct tree *t)
{
	char holder[TREE_HOLDER_MAX];
	struct err e = { 0 };

	t->used_ms = time_now_ms();
	t->touched = true; /* trees_tidy() writes it */
	if (is_first(packages, s, t))
		return false;
	(void)snprintf(holder, sizeof(holder), "%s%s", s ? "s:" : "o:", s ? s->id : owner);
	bool had = drop_uses(&packages->trees, holder, t);

	tree_add_use(&packages->trees, holder, t);
	if ((!s || s->name[0]) &&
	    store_use_put(packages->daemon->store, holder, t->key, (int64_t)t->used_ms, &e) < 0)
		trees_complain(&e);
	return !had;
}

void trees_touch(const struct sandbox *s)
{
	uint64_t now = time_now_ms();

	for (struct tree_use *u = packages_of(s)->trees.uses; u; u = u->next)
		if (is_holder(u, s)) {
			u->tree->used_ms = now;
			u->tree->touched = true;
		}
}

bool trees_leave(struct packages *packages, const char *id)
{
	char holder[TREE_HOLDER_MAX];
	struct err e = { 0 };

	(void)snprintf(holder, sizeof(holder), "s:%s", id);
	bool any = drop_uses(&packages->trees, holder, NULL);

	if (any && store_use_del(packages->daemon->store, holder, &e) < 0)
		trees_complain(&e);
	return any;
}

const struct tree *trees_next(const struct packages *packages, const struct sandbox *s,
			      const struct tree_use **at)
{
	const struct tree_use *u = *at ? (*at)->next : packages->trees.uses;

	for (; u; u = u->next)
		if (is_holder(u, s)) {
			*at = u;
			return u->tree;
		}
	return NULL;
}
