/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspaces.c - The list of workspaces, from the store, and the sandboxes that use them.
 *
 * A record is written before a client is told of it. At a start the workspace store gets the list
 * of workspaces and of the trees that sandboxes use, and removes other trees; a worker that follows
 * a killed one gets the list first, too.
 */
#include "front/workspaces/workspaces.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "front/sandbox/sandbox.h"
#include "front/sandbox/sandboxes.h"
#include "front/support/json_alloc.h"
#include "front/support/log.h"
#include "front/support/refusal.h"
#include "front/support/time_text.h"
#include "ledger/ledger.h"
#include "store/store.h"

/* ---- finding ------------------------------------------------------------------------------- */

struct workspace *workspaces_find(struct workspaces *workspaces, const char *owner,
				  const char *name)
{
	for (struct workspace *w = workspaces->all; w; w = w->next)
		if (!w->removing && strcmp(w->name, name) == 0 && strcmp(w->owner, owner) == 0)
			return w;
	return NULL;
}

struct sandbox *workspaces_user(const struct workspaces *workspaces, const struct workspace *w,
				struct sandbox *at)
{
	struct sandbox *s = at ? at->next : workspaces->sandboxes->first;

	while (s &&
	       (s->state != SANDBOX_RUNNING || s->ending ||
		strcmp(s->spec.workspace.name, w->name) != 0 || strcmp(s->owner, w->owner) != 0))
		s = s->next;
	return s;
}

/* ---- the store ----------------------------------------------------------------------------- */

static void not_recorded(struct refusal *ret, const struct err *e)
{
	(void)refusal_set(ret, REFUSAL_UNAVAILABLE, "workspace_failed", NULL, NULL,
			  "it could not be recorded, so it was not done: %.200s", e->msg);
	ret->retry_after_s = 5;
}

int workspace_save(struct workspaces *workspaces, struct workspace *w, struct refusal *ret)
{
	char *labels = w->labels ? json_dumps(w->labels, JSON_COMPACT) : NULL;
	struct err e = { 0 };
	const struct store_workspace row = {
		.key = w->key,
		.owner = w->owner,
		.name = w->name,
		.labels = labels,
		.backing = w->backing,
		.quota_bytes = w->quota_bytes,
		.quota_files = w->quota_files,
		.created_at = (int64_t)w->created_ms,
		.changed_at = (int64_t)w->changed_ms,
	};
	int r = store_workspace_put(workspaces->daemon->store, &row, &e);

	json_alloc_free(labels);
	if (r == 0)
		return 0;
	log_event(LOG_LEVEL_ERROR, "not_recorded", F_STR("workspace", w->name),
		  F_STR("why", e.msg));
	if (ret)
		not_recorded(ret, &e);
	return -1;
}

static void free_one(struct workspace *w)
{
	json_decref(w->labels);
	free(w->backing);
	free(w);
}

static int load_one(const struct store_workspace *row, void *arg)
{
	struct workspaces *workspaces = arg;
	struct workspace *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	(void)snprintf(w->key, sizeof(w->key), "%s", row->key);
	(void)snprintf(w->owner, sizeof(w->owner), "%s", row->owner);
	(void)snprintf(w->name, sizeof(w->name), "%s", row->name);
	w->labels = row->labels[0] ? json_alloc_load(row->labels, strlen(row->labels), 0, NULL) :
				     NULL;
	w->backing = row->backing[0] ? strdup(row->backing) : NULL;
	w->quota_bytes = row->quota_bytes;
	w->quota_files = row->quota_files;
	w->created_ms = (uint64_t)row->created_at;
	w->changed_ms = (uint64_t)row->changed_at;
	w->next = workspaces->all;
	workspaces->all = w;
	return 0;
}

struct workspace *workspaces_add(struct workspaces *workspaces, const struct workspace *from,
				 struct refusal *ret)
{
	struct workspace *w = malloc(sizeof(*w));
	struct err e = { 0 };

	if (!w) {
		(void)refusal_no_memory(ret);
		return NULL;
	}
	if (ledger_record(workspaces->daemon->ledger, &e, "workspace.create", from->owner, NULL,
			  L_STR("workspace", from->name), L_STR("key", from->key),
			  L_UINT("quota_bytes", from->quota_bytes)) < 0) {
		free(w);
		not_recorded(ret, &e);
		return NULL;
	}
	*w = *from;
	w->created_ms = w->changed_ms = time_now_ms();
	if (workspace_save(workspaces, w, ret) < 0) {
		free(w);
		return NULL;
	}
	json_incref(w->labels);
	w->next = workspaces->all;
	workspaces->all = w;
	return w;
}

void workspaces_forget(struct workspaces *workspaces, struct workspace *w)
{
	const struct workspace_backing *b = workspaces->backing;
	struct err e = { 0 };

	if (b && b->backs(workspaces->buckets, w))
		b->forgotten(workspaces->buckets, w);
	if (store_workspace_del(workspaces->daemon->store, w->key, &e) < 0 ||
	    ledger_record(workspaces->daemon->ledger, &e, "workspace.remove", w->owner, NULL,
			  L_STR("workspace", w->name), L_STR("key", w->key)) < 0)
		log_event(LOG_LEVEL_ERROR, "not_recorded", F_STR("workspace", w->name),
			  F_STR("why", e.msg));
	for (struct workspace **at = &workspaces->all; *at; at = &(*at)->next)
		if (*at == w) {
			*at = w->next;
			break;
		}
	free_one(w);
}

/* ---- life ---------------------------------------------------------------------------------- */

int workspaces_open(struct workspaces *workspaces, struct err *e)
{
	return workspace_store_open(&workspaces->store, workspaces->daemon->config.state, e);
}

/* The list for the workspace store: each workspace, and the trees that sandboxes use. A descriptor
 * or -errno. */
static int list_known(struct workspaces *workspaces, struct err *e)
{
	_buf_ struct buf b = BUF_INIT(WORKSPACE_STORE_KNOWN_BYTES);

	for (struct workspace *w = workspaces->all; w; w = w->next) {
		(void)buf_puts(&b, w->key);
		for (struct sandbox *s = NULL; (s = workspaces_user(workspaces, w, s));) {
			if (s->spec.workspace.tree[0])
				(void)buf_printf(&b, " %s", s->spec.workspace.tree);
			if (s->spec.workspace.base[0])
				(void)buf_printf(&b, " %s", s->spec.workspace.base);
		}
		(void)buf_puts(&b, "\n");
	}
	int fd = b.err ? b.err : fd_memfd("caisson-known", buf_str(&b), b.len);

	return fd < 0 ? err_set(e, fd, "list the workspaces") : fd;
}

static int sweep(struct workspaces *workspaces, struct err *e)
{
	struct workspace_store_req q = { .op = WORKSPACE_STORE_SWEEP };
	struct workspace_store_reply r;
	_fd_ int fd = list_known(workspaces, e);

	if (fd < 0)
		return fd;
	int code = workspace_store_wait(&workspaces->store, &q, fd, &r);

	return code < 0 ? err_set(e, code, "sweep the workspaces") : 0;
}

static int look(struct workspaces *workspaces, struct workspace *w)
{
	struct workspace_store_req q = { .op = WORKSPACE_STORE_LOOK };
	struct workspace_store_reply r;

	memcpy(q.key, w->key, sizeof(w->key));
	int code = workspace_store_wait(&workspaces->store, &q, -1, &r);

	if (code == 0)
		w->generation = r.generation, w->volume = r.volume;
	else
		log_event(LOG_LEVEL_ERROR, "workspace_lost", F_STR("owner", w->owner),
			  F_STR("workspace", w->name),
			  F_STR("why", code == -EPIPE ? "the workspace store is gone" : r.msg));
	return code;
}

/* ---- another workspace store --------------------------------------------------------------- */

/* The new worker has already reported the commits of the killed one
 * (workspace_store/workspace_dir.h), so the list is complete. */
static int on_again(struct workspace_store *s, uint32_t life)
{
	struct workspaces *all =
		(struct workspaces *)((char *)s - offsetof(struct workspaces, store));
	struct workspace_store_req q = { .op = WORKSPACE_STORE_SWEEP, .life = life };
	struct err e = { 0 };
	_fd_ int fd = list_known(all, &e);

	return fd < 0 ? fd : workspace_store_tell(s, &q, fd);
}

int workspaces_start(struct workspaces *workspaces, struct err *e)
{
	int r = store_workspace_each(workspaces->daemon->store, load_one, workspaces, e);

	workspaces->store.again = on_again;
	if (r == 0)
		r = sweep(workspaces, e);
	for (struct workspace *w = workspaces->all; r == 0 && w; w = w->next)
		if (look(workspaces, w) == -EPIPE)
			r = err_say(e, -EPIPE, "the workspace store ended");
	return r < 0 ? r : service_link_start(&workspaces->store.link, workspaces->loop, e);
}

/* ---- for people ---------------------------------------------------------------------------- */

void workspace_json(struct workspaces *workspaces, const struct workspace *w,
		    const struct workspace_store_reply *r, struct json *j)
{
	const char *key;
	json_t *value;

	json_object_begin(j);
	json_member_str(j, "name", w->name);
	json_key(j, "labels");
	json_object_begin(j);
	json_object_foreach(w->labels, key, value)
		json_member_str(j, key, json_string_value(value));
	json_object_end(j);
	json_member_uint(j, "generation", w->generation);
	json_member_uint(j, "quota_mib", w->quota_bytes >> 20);
	json_member_uint(j, "quota_files", w->quota_files);
	json_member_str(j, "quota", w->volume ? "kernel" : "commit");
	if (r) {
		json_member_uint(j, "bytes", r->bytes);
		json_member_uint(j, "files", r->files);
	}
	json_key(j, "sandboxes");
	json_array_begin(j);
	for (struct sandbox *s = NULL; (s = workspaces_user(workspaces, w, s));) {
		json_object_begin(j);
		json_member_str(j, "name", s->name);
		json_member_str(j, "mode", workspace_mode_name(s->spec.workspace.mode));
		json_object_end(j);
	}
	json_array_end(j);
	if (workspaces->backing && workspaces->backing->backs(workspaces->buckets, w))
		workspaces->backing->tell(workspaces->buckets, w, j);
	time_json(j, "created_at", w->created_ms);
	time_json(j, "changed_at", w->changed_ms);
	json_object_end(j);
}
