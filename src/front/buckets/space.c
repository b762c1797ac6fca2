/* SPDX-License-Identifier: Apache-2.0 */
/* space.c - The table of workspaces that are in buckets, and the sandboxes that wait for them. */
#include "front/buckets/space.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "front/sandbox/sandbox.h"
#include "front/sandbox/sandboxes.h"
#include "front/support/log.h"
#include "front/support/refusal.h"
#include "front/workspaces/workspaces.h"

struct waiter {
	struct waiter *next;
	workspace_done_fn *done;
	void *arg; /* the sandbox */
};

static struct space *spaces;

/* ---- which --------------------------------------------------------------------------------- */

/* The owner's own place comes first. */
bool space_place(const struct config *c, const struct workspace *w, char *out)
{
	char names[2][2 * BUCKET_PLACE_MAX + 8];

	(void)snprintf(names[0], sizeof(names[0]), "%.64s/%.64s", w->owner, w->name);
	(void)snprintf(names[1], sizeof(names[1]), "%.64s", w->name);
	for (size_t k = 0; k < 2; k++)
		for (size_t i = 0; c->workspace_buckets[i]; i++) {
			size_t len = strlen(names[k]);

			if (len < BUCKET_PLACE_MAX &&
			    strncmp(c->workspace_buckets[i], names[k], len) == 0 &&
			    c->workspace_buckets[i][len] == '=') {
				(void)snprintf(out, BUCKET_PLACE_MAX + 1, "/%.63s", names[k]);
				return true;
			}
		}
	return false;
}

struct workspace *space_workspace(const struct space *p)
{
	struct workspace *w = p->buckets->workspaces->all;

	while (w && strcmp(w->key, p->key) != 0)
		w = w->next;
	return w;
}

struct space *space_of(struct buckets *buckets, const struct workspace *w)
{
	struct space *p = spaces;

	while (p && strcmp(p->key, w->key) != 0)
		p = p->next;
	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->buckets = buckets;
	p->job.arg = p;
	p->import.arg = p;
	memcpy(p->key, w->key, sizeof(p->key));
	(void)space_place(&buckets->daemon->config, w, p->place);
	json_t *kept = w->backing ? json_loads(w->backing, 0, NULL) : NULL;

	p->dirty = json_is_true(json_object_get(kept, "dirty"));
	json_decref(kept);
	p->next = spaces;
	spaces = p;
	return p;
}

void space_save(struct space *p)
{
	struct workspace *w = space_workspace(p);
	char *text = strdup(p->dirty ? "{\"dirty\":true}" : "{\"dirty\":false}");

	if (!w || !text) {
		free(text);
		return;
	}
	free(w->backing);
	w->backing = text;
	(void)workspace_save(p->buckets->workspaces, w, NULL); /* logs a failure itself */
}

/* ---- who waits ----------------------------------------------------------------------------- */

int space_wait(struct space *p, workspace_done_fn *done, void *sandbox)
{
	struct waiter *one = calloc(1, sizeof(*one));

	if (!one)
		return -ENOMEM;
	*one = (struct waiter){ .next = p->waiters, .done = done, .arg = sandbox };
	p->waiters = one;
	return 0;
}

/* A sandbox that has ended meanwhile gets no answer. */
static bool is_there(const struct sandboxes *sandboxes, const void *sandbox)
{
	for (const struct sandbox *s = sandboxes->first; s; s = s->next)
		if (s == sandbox)
			return true;
	return false;
}

/* Nobody reports writes in place one by one: count the workspace as ahead from now on. */
static void note_writers(struct space *p, struct workspace *w)
{
	for (struct sandbox *s = NULL; (s = workspaces_user(p->buckets->workspaces, w, s));)
		if (s->spec.workspace.mode == WORKSPACE_RW && !p->dirty) {
			p->dirty = true;
			space_save(p);
		}
}

void space_answer(struct space *p, const struct refusal *why)
{
	struct workspace *w = space_workspace(p);
	struct waiter *list = p->waiters;

	p->waiters = NULL;
	if (w && list && !why)
		note_writers(p, w);
	while (list) {
		struct waiter *one = list;

		list = one->next;
		if (w && is_there(p->buckets->workspaces->sandboxes, one->arg))
			one->done(w, one->arg, why);
		free(one);
	}
}

void space_refuse(struct space *p)
{
	struct refusal why;

	(void)refusal_set(&why, REFUSAL_UNAVAILABLE, "workspace_failed", "workspace",
			  "the operator of this daemon can repair it",
			  "the bucket of the workspace: %.280s", p->why);
	why.retry_after_s = 10;
	space_answer(p, &why);
}

/* ---- how it went --------------------------------------------------------------------------- */

void space_failed(struct space *p, const char *what, int code, const char *why)
{
	const struct workspace *w = space_workspace(p);

	p->code = code;
	(void)snprintf(p->why, sizeof(p->why), "%s", why);
	log_event(LOG_LEVEL_WARNING, "bucket_failed", F_STR("what", what),
		  F_STR("workspace", w ? w->name : ""), F_STR("why", why));
}

void space_succeeded(struct space *p, const char *what)
{
	const struct workspace *w = space_workspace(p);

	p->code = 0;
	p->why[0] = '\0';
	p->fails = 0;
	log_event(LOG_LEVEL_INFO, "bucket", F_STR("what", what),
		  F_STR("workspace", w ? w->name : ""), F_UINT("files", p->files),
		  F_UINT("bytes", p->bytes));
}

void space_drop(struct space *p)
{
	for (struct space **at = &spaces; *at; at = &(*at)->next)
		if (*at == p) {
			*at = p->next;
			break;
		}
	timer_cancel(&p->retry);
	bucket_stop(&p->job);
	service_link_forget(&p->buckets->workspaces->store.link, &p->import.call);
	while (p->waiters) {
		struct waiter *one = p->waiters;

		p->waiters = one->next;
		free(one);
	}
	free(p);
}

void spaces_drop_all(void)
{
	while (spaces)
		space_drop(spaces);
}
