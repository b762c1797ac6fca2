/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stock.c - The trees after a start, and the removal of old ones.
 *
 * At a start the package store compares each tree of the store with the disk; a tree that is
 * missing or changed is forgotten, and a sandbox that needs it fetches it again. Later a tree goes
 * when nobody uses it and it is older than --package-keep, or all trees are larger than
 * --package-store.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "front/cell/image_use.h"
#include "front/packages/packages.h"
#include "front/packages/trees.h"
#include "front/packages/trees_int.h"
#include "front/sandbox/sandbox.h"
#include "front/sandbox/sandboxes.h"
#include "front/support/json_alloc.h"
#include "front/support/log.h"
#include "front/support/time_text.h"
#include "ledger/ledger.h"
#include "store/store.h"

/* ---- the start ----------------------------------------------------------------------------- */

static int load_tree(const struct store_tree *row, void *arg)
{
	struct packages *packages = arg;
	struct trees *all = &packages->trees;
	/* A store of an older version: then trees were made with the own image only. */
	const char *image = row->image[0] ? row->image :
					    image_key(&packages->sandboxes->cells->images->own);
	struct tree *t = calloc(1, sizeof(*t));

	if (!t)
		return 0;
	(void)snprintf(t->key, sizeof(t->key), "%s", row->key);
	(void)snprintf(t->sha256, sizeof(t->sha256), "%s", row->sha256);
	(void)snprintf(t->seal, sizeof(t->seal), "%s", row->seal);
	(void)snprintf(t->installer, sizeof(t->installer), "%s", row->installer);
	(void)snprintf(t->image, sizeof(t->image), "%s", image);
	(void)snprintf(t->context, sizeof(t->context), "%s", row->context);
	t->touched = !row->image[0]; /* so that it is written */
	t->eco = ecosystem_find(row->language);
	t->request = strdup(row->request);
	t->exact = row->exact;
	t->packages = json_alloc_load(row->packages, strlen(row->packages), 0, NULL);
	t->bytes = row->bytes;
	t->files = row->files;
	t->created_ms = (uint64_t)row->created_at;
	t->used_ms = (uint64_t)row->used_at;
	if (t->eco == ECO_MAX_ || !t->request || !json_is_array(t->packages)) {
		tree_free(t);
		return 0;
	}
	t->next = all->all;
	all->all = t;
	all->bytes += t->bytes;
	return 0;
}

static struct tree *by_key(struct trees *all, const char *key)
{
	struct tree *t = all->all;

	while (t && strcmp(t->key, key) != 0)
		t = t->next;
	return t;
}

static int load_use(const char *holder, const char *key, void *arg)
{
	struct trees *all = arg;
	struct tree *t = by_key(all, key);

	if (t)
		tree_add_use(all, holder, t);
	return 0;
}

/* The tree is missing or changed, so nobody may import from it. Its users go with it; a request for
 * these packages fetches them again. */
static void refuse(struct packages *packages, struct tree *t, int code)
{
	const char *event = code == -ENOENT ? "packages_lost" : "packages_changed";
	struct err e = { 0 };

	log_event(code == -ENOENT ? LOG_LEVEL_WARNING : LOG_LEVEL_ERROR, event,
		  F_STR("key", t->key), F_STR("request", t->request), F_STR("sha256", t->sha256));
	if (code != -ENOENT &&
	    ledger_record(packages->daemon->ledger, &e, "packages.changed", NULL, NULL,
			  L_STR("request", t->request), L_STR("tree", t->sha256)) < 0)
		log_event(LOG_LEVEL_ERROR, "not_recorded", F_STR("why", e.msg));
	tree_forget(packages, t);
}

/* The package store checks that no tree has changed (src/package_store/digest.c). */
static int keep_known(struct packages *packages, struct err *e)
{
	struct tree *next;

	for (struct tree *t = packages->trees.all; t; t = next) {
		struct package_store_req q = { .op = PACKAGE_STORE_KEEP };
		struct package_store_reply a;
		int r;

		next = t->next;
		memcpy(q.key, t->key, sizeof(t->key));
		memcpy(q.sha256, t->sha256, sizeof(t->sha256));
		memcpy(q.seal, t->seal, sizeof(t->seal));
		r = package_store_wait(&packages->store, &q, &a);
		if (r == -EPIPE)
			return err_set(e, r, "check the package trees");
		if (r < 0) {
			refuse(packages, t, r);
		} else if (strcmp(t->seal, a.seal) != 0) {
			(void)snprintf(t->seal, sizeof(t->seal), "%.64s", a.seal);
			if (tree_put(packages, t, e) < 0)
				return e->code;
		}
	}
	return 0;
}

int trees_load(struct packages *packages, struct err *e)
{
	struct trees *all = &packages->trees;
	struct package_store_req q = { .op = PACKAGE_STORE_SWEEP };
	struct package_store_reply a;
	int r = store_tree_each(packages->daemon->store, load_tree, packages, e);

	all->changes = 1;
	if (r == 0)
		r = store_use_each(packages->daemon->store, load_use, all, e);
	if (r == 0)
		r = keep_known(packages, e);
	if (r == 0 && (r = package_store_wait(&packages->store, &q, &a)) < 0)
		(void)err_set(e, r, "sweep the package store");
	return r;
}

/* ---- garbage ------------------------------------------------------------------------------- */

static void remove_tree(struct packages *packages, struct tree *gone)
{
	log_event(LOG_LEVEL_INFO, "packages_removed", F_STR("request", gone->request),
		  F_UINT("bytes", gone->bytes));
	tree_drop_files(packages, gone->key);
	tree_forget(packages, gone);
}

static struct tree *oldest(struct trees *all)
{
	struct tree *found = NULL;

	for (struct tree *t = all->all; t; t = t->next)
		if (t->users == 0 && (!found || t->used_ms < found->used_ms))
			found = t;
	return found;
}

/* An owner's tree waits for new sandboxes: given up when none has used it for --package-keep. */
static bool is_given_up(const struct packages *packages, const struct tree_use *u, uint64_t now)
{
	const struct sandbox *s = packages->sandboxes->first;

	if (u->holder[0] != 'o' ||
	    now <= u->tree->used_ms + packages->daemon->config.package_keep_ms)
		return false;
	while (s && (strcmp(s->owner, u->holder + 2) != 0 || !trees_fit(u->tree, s)))
		s = s->next;
	return !s;
}

static void drop_given_up(struct packages *packages, uint64_t now)
{
	struct tree_use **at = &packages->trees.uses;

	while (*at) {
		struct tree_use *u = *at;

		if (is_given_up(packages, u, now)) {
			*at = u->next;
			u->tree->users--; /* its record goes with the tree */
			free(u);
		} else {
			at = &u->next;
		}
	}
}

void trees_tidy(struct packages *packages)
{
	struct trees *all = &packages->trees;
	uint64_t now = time_now_ms();
	struct err e = { 0 };
	struct tree *t;

	for (t = all->all; t; t = t->next)
		if (t->touched) {
			t->touched = false;
			if (tree_put(packages, t, &e) < 0)
				trees_complain(&e);
		}
	drop_given_up(packages, now);
	while ((t = oldest(all)) && (now > t->used_ms + packages->daemon->config.package_keep_ms ||
				     all->bytes > packages->daemon->config.package_store))
		remove_tree(packages, t);
}
