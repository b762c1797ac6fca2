/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hold.c - A sandbox and its tree: which sandboxes may share one, how it is opened and released.
 *
 * Generations share unchanged files. So no sandbox may write into the newest one in place while
 * another relies on a tree that does not change: a copy on write, or a view. Sandboxes that write
 * in place, and those that only read what they write, may share it.
 */
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "front/sandbox/audit.h"
#include "front/sandbox/hooks.h"
#include "front/sandbox/sandbox.h"
#include "front/sandbox/sandboxes.h"
#include "front/support/refusal.h"
#include "front/support/time_text.h"
#include "front/workspaces/workspaces.h"

/* ---- sharing ------------------------------------------------------------------------------- */

/* Whether it relies on a tree that does not change. */
static bool is_still(const struct workspace_use *u)
{
	return u->mode == WORKSPACE_COW || u->allow || u->deny;
}

static struct workspaces *workspaces_of(const struct sandbox *s)
{
	return s->sandboxes->hooks->workspace.part;
}

int workspaces_admit(struct workspaces *workspaces, const char *owner,
		     const struct workspace_use *use, const struct sandbox *self,
		     struct refusal *ret)
{
	const struct workspace *w = use->name[0] ? workspaces_find(workspaces, owner, use->name) :
						   NULL;

	if (!use->name[0])
		return 0;
	if (!w)
		return refusal_set(ret, REFUSAL_NOT_FOUND, "no_such_workspace", "workspace",
				   "make it first: POST /v1/workspaces",
				   "you have no workspace '%.64s'", use->name);
	if (use->mode == WORKSPACE_RW && !w->volume && !workspaces->daemon->config.workspace_rw)
		return refusal_set(
			ret, REFUSAL_INVALID, "quota_unavailable", "workspace",
			"use mode cow and commit, or start the daemon with --workspace-rw",
			"nothing enforces the quota of a sandbox that writes in place");
	for (struct sandbox *s = NULL; (s = workspaces_user(workspaces, w, s));) {
		const struct workspace_use *u = &s->spec.workspace;

		if (s == self || (use->mode != WORKSPACE_RW && u->mode != WORKSPACE_RW) ||
		    (!is_still(use) && !is_still(u) && strcmp(u->tree, u->base) == 0))
			continue;
		return refusal_set(ret, REFUSAL_CONFLICT, "workspace_busy", "workspace",
				   "wait for it, stop it, or use the same mode",
				   "sandbox '%.64s' uses it in mode %s, which excludes mode %s",
				   s->name, workspace_mode_name(u->mode),
				   workspace_mode_name(use->mode));
	}
	return 0;
}

/* ---- opening ------------------------------------------------------------------------------- */

static void fail(struct sandbox *s, enum refusal_kind kind, const char *code, const char *message)
{
	struct refusal why;

	(void)refusal_set(&why, kind, code, "workspace", NULL, "%s", message);
	why.retry_after_s = kind == REFUSAL_UNAVAILABLE ? 1 : 0;
	sandbox_no_cell(s, &why);
}

static void on_open(struct workspace_store_call *c, const struct workspace_store_reply *r, int *fd)
{
	struct sandbox *s = c->arg;
	struct workspace_use *u = &s->spec.workspace;

	if (r->code < 0 || *fd < 0) {
		fail(s, REFUSAL_UNAVAILABLE, "workspace_failed",
		     r->code < 0 ? r->msg : "the workspace store sent no tree");
		return;
	}
	u->fd = 1 + TAKE_FD(*fd);
	if (!u->tree[0]) {
		(void)snprintf(u->tree, sizeof(u->tree), "%s", r->tree);
		(void)snprintf(u->base, sizeof(u->base), "%s", r->tree);
		audit_spec(s); /* the next front has to know the tree */
	}
	sandbox_step(s);
}

static void open_tree(struct sandbox *s, const struct workspace *w)
{
	struct workspace_use *u = &s->spec.workspace;
	struct workspace_store_req q = { .op = WORKSPACE_STORE_OPEN };
	_fd_ int rules = -1, parts = -1;

	if ((!u->tree[0] && workspace_use_rules(u, &rules) < 0) ||
	    (u->mode == WORKSPACE_RW && workspace_use_parts(u, &parts) < 0)) {
		fail(s, REFUSAL_UNAVAILABLE, "workspace_failed",
		     "the daemon has no descriptor or memory for the rules of the workspace");
		return;
	}
	if (rules >= 0)
		q.op = WORKSPACE_STORE_VIEW;
	memcpy(u->key, w->key, sizeof(u->key));
	memcpy(q.key, w->key, sizeof(w->key));
	memcpy(q.tree, u->tree, sizeof(q.tree));
	s->workspace_call.fn = on_open;
	s->workspace_call.arg = s;
	if (workspace_store_ask(&workspaces_of(s)->store, &s->workspace_call, &q,
				rules >= 0 ? rules : parts) < 0)
		fail(s, REFUSAL_UNAVAILABLE, "workspace_failed",
		     "the workspace store does not answer");
}

static void on_filled(struct workspace *w, void *arg, const struct refusal *why)
{
	struct sandbox *s = arg;

	s->workspace_filling = false;
	if (why)
		sandbox_no_cell(s, why);
	else if (!s->ending && s->state == SANDBOX_RUNNING)
		open_tree(s, w);
}

bool workspaces_ready(struct sandbox *s)
{
	const struct workspace_use *u = &s->spec.workspace;
	const struct workspace_backing *b = workspaces_of(s)->backing;

	if (!u->name[0] || u->fd)
		return true;
	if (s->workspace_call.call.seq || s->workspace_filling)
		return false;
	struct workspace *w = workspaces_find(workspaces_of(s), s->owner, u->name);

	if (!w) {
		fail(s, REFUSAL_NOT_FOUND, "no_such_workspace", "its workspace has been removed");
	} else if (b && b->backs(workspaces_of(s)->buckets, w)) {
		s->workspace_filling = true;
		b->fill(workspaces_of(s)->buckets, w, on_filled, s);
	} else {
		open_tree(s, w);
	}
	return false;
}

/* ---- releasing ----------------------------------------------------------------------------- */

static bool is_used(const struct workspaces *workspaces, const struct workspace *w,
		    const char *tree)
{
	for (struct sandbox *s = NULL; (s = workspaces_user(workspaces, w, s));)
		if (strcmp(s->spec.workspace.tree, tree) == 0 ||
		    strcmp(s->spec.workspace.base, tree) == 0)
			return true;
	return false;
}

/* The workspace store keeps the newest generation, whatever it is asked to drop. */
void workspaces_drop(struct workspaces *workspaces, const struct workspace *w, const char *tree)
{
	struct workspace_store_req q = { .op = WORKSPACE_STORE_DROP };

	if (!tree[0] || is_used(workspaces, w, tree))
		return;
	memcpy(q.key, w->key, sizeof(w->key));
	(void)snprintf(q.tree, sizeof(q.tree), "%s", tree);
	(void)workspace_store_ask(&workspaces->store, NULL, &q, -1);
}

void workspaces_written(struct workspaces *workspaces, struct workspace *w, uint64_t old_generation)
{
	const struct workspace_backing *b = workspaces->backing;

	w->changed_ms = time_now_ms();
	(void)workspace_save(workspaces, w, NULL);
	if (b && b->backs(workspaces->buckets, w))
		b->written(workspaces->buckets, w, old_generation);
}

void workspaces_left(struct sandbox *s)
{
	struct workspace_use *u = &s->spec.workspace;
	struct workspace *w = u->name[0] ? workspaces_find(workspaces_of(s), s->owner, u->name) :
					   NULL;
	char tree[WORKSPACE_STORE_TREE_MAX], base[WORKSPACE_STORE_TREE_MAX];

	service_link_forget(&workspaces_of(s)->store.link, &s->workspace_call.call);
	if (u->fd)
		fd_close(u->fd - 1);
	u->fd = 0;
	memcpy(tree, u->tree, sizeof(tree));
	memcpy(base, u->base, sizeof(base));
	u->tree[0] = u->base[0] = '\0';
	if (!w)
		return;
	workspaces_drop(workspaces_of(s), w, tree);
	if (strcmp(tree, base) != 0)
		workspaces_drop(workspaces_of(s), w, base);
	if (u->mode == WORKSPACE_RW && tree[0])
		workspaces_written(workspaces_of(s), w, w->generation);
}
