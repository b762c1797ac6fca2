/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handle_workspace_changes.c - Changes of a sandbox in its workspace: show, commit, discard.
 *
 * pid 1 of the cell packs /workspace. The workspace store reads the archive, compares it with the
 * tree that the sandbox began with, and for a commit makes the next generation of the workspace.
 * The front passes a descriptor on and reads no file. A client that goes away does not end a commit
 * that has begun.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/foreign.h"
#include "base/json.h"
#include "front/api/handlers.h"
#include "front/cell/cell.h"
#include "front/http/reply.h"
#include "front/http/serve.h"
#include "front/operations/services.h"
#include "front/sandbox/audit.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/sandbox.h"
#include "front/support/json_alloc.h"
#include "front/support/name.h"
#include "front/workspaces/workspaces.h"
#include "wire/files.h"

#define ANSWER_MAX (12u << 20)

struct change_job {
	struct entry entry;
	struct cell_command pack;
	struct workspace_store_call call;
	struct services *services;
	struct sandbox *sandbox; /* NULL: it is over */
	struct http_exchange *x; /* NULL: the client is gone */
	struct cell *cell;
	bool commit;
	char name[WORKSPACE_NAME_MAX + 1], owner[OWNER_MAX], box[SANDBOX_NAME_MAX + 1], id[33];
	struct deferred reaper;
};

/* ---- the end ------------------------------------------------------------------------------- */

static void end(struct change_job *j)
{
	(void)context_done(j->x);
	if (j->cell && j->pack.id)
		cell_forget(j->cell, &j->pack);
	j->cell = NULL;
	service_link_forget(&j->services->workspaces->store.link, &j->call.call);
	sandbox_leave(&j->entry);
	loop_free_later(j->services->loop, &j->reaper, j);
}

static void note(const struct change_job *j, const char *outcome, uint64_t bytes)
{
	const struct audit_file a = { j->services->daemon->ledger, j->owner, j->box, j->id,
				      "workspace.commit" };

	if (j->commit)
		audit_file_end(&a, outcome, bytes, NULL);
}

static void fail(struct change_job *j, const struct refusal *why)
{
	struct http_exchange *x = j->x;

	note(j, why->code, 0);
	end(j);
	if (x)
		reply_refusal(x, why);
}

static void fail_text(struct change_job *j, enum refusal_kind kind, const char *code,
		      const char *hint, const char *message)
{
	struct refusal why;

	(void)refusal_set(&why, kind, code, NULL, hint, "%.300s", message);
	why.retry_after_s = kind == REFUSAL_UNAVAILABLE ? 1 : 0;
	fail(j, &why);
}

/* ---- the answer ---------------------------------------------------------------------------- */

/* All lines, for free(). NULL: no lines. */
static char *read_lines(int fd)
{
	return fd >= 0 && foreign_check(fd, FOREIGN_MEMORY) == 0 ?
		       fd_read_whole(fd, ANSWER_MAX, NULL) :
		       NULL;
}

/* The next line, which is an object; NULL at the end. *@at moves behind it. */
static const char *next_line(char **at, size_t *ret_len)
{
	const char *s = *at;
	size_t n = strcspn(s, "\n");

	if (n < 2 || s[n] != '\n' || s[0] != '{' || s[n - 1] != '}')
		return NULL;
	*ret_len = n;
	*at += n + 1;
	return s;
}

static void answer(struct change_job *j, const struct workspace_store_reply *r, int fd)
{
	_buf_ struct buf b = BUF_INIT(ANSWER_MAX);
	_mem_ char *text = read_lines(fd);
	char *at = text;
	struct http_exchange *x = j->x;
	struct json out;
	const char *line;
	size_t len;

	json_init(&out, &b);
	json_object_begin(&out);
	json_member_str(&out, "workspace", j->name);
	json_member_uint(&out, "generation", r->generation);
	json_member_uint(&out, "count", r->changes);
	/* Without a free descriptor the front receives the reply and not the list. */
	json_member_bool(&out, "truncated", r->cut || (!text && r->changes));
	json_member_array(&out, "changes");
	while (at && (line = next_line(&at, &len)))
		json_raw(&out, line, len);
	json_array_end(&out);
	json_object_end(&out);
	end(j);
	if (!x)
		return;
	reply_written(x, 200, &out);
}

/* The message has as many names as there is room for, so that the client can find the files. */
static void conflict(struct change_job *j, const struct workspace_store_reply *r, int fd)
{
	_mem_ char *text = read_lines(fd);
	char *at = text;
	struct refusal why = {
		.kind = REFUSAL_CONFLICT,
		.code = "workspace_conflict",
		.hint = "discard, or copy what you need to other names; see the diff"
	};
	int n = snprintf(why.message, sizeof(why.message),
			 "other clients have changed these since: ");
	const char *line, *path;
	size_t len, named = 0;

	while (at && (line = next_line(&at, &len))) {
		json_t *o = json_alloc_load(line, len, 0, NULL);

		path = json_string_value(json_object_get(o, "path"));
		if (path && (size_t)n + strlen(path) + 24 < sizeof(why.message)) {
			n += snprintf(why.message + n, sizeof(why.message) - (size_t)n, "%s%s",
				      named ? ", " : "", path);
			named++;
		}
		json_decref(o);
	}
	if (named < r->changes)
		(void)snprintf(why.message + n, sizeof(why.message) - (size_t)n, " and %llu more",
			       (unsigned long long)(r->changes - named));
	fail(j, &why);
}

static void refused(struct change_job *j, const struct workspace_store_reply *r)
{
	switch (-r->code) {
	case EDQUOT:
	case ENOSPC:
		fail_text(j, REFUSAL_TOO_LARGE, "workspace_full",
			  "remove something in /workspace, or ask for a larger quota", r->msg);
		break;
	case EAGAIN:
		fail_text(j, REFUSAL_CONFLICT, "workspace_changing",
			  "wait until nothing writes, and try again", r->msg);
		break;
	case EPERM:
	case EACCES:
	case EBADMSG:
	case EEXIST:
	case ENAMETOOLONG:
	case ELOOP:
		fail_text(j, REFUSAL_INVALID, "workspace_unreadable",
			  "mend or remove it in /workspace", r->msg);
		break;
	default:
		fail_text(j, REFUSAL_UNAVAILABLE, "workspace_failed", NULL, r->msg);
	}
}

/* From now on the sandbox is compared with the tree that it has committed; its cell still has the
 * old one mounted. */
static void kept(struct change_job *j, const struct workspace_store_reply *r)
{
	struct workspace *w = workspaces_find(j->services->workspaces, j->owner, j->name);
	uint64_t before = w ? w->generation : 0;
	char old[WORKSPACE_STORE_TREE_MAX];

	if (!w || r->generation == before)
		return;
	w->generation = r->generation;
	if (j->sandbox && r->tree[0]) {
		memcpy(old, j->sandbox->spec.workspace.base, sizeof(old));
		memcpy(j->sandbox->spec.workspace.base, r->tree, WORKSPACE_STORE_TREE_MAX);
		audit_spec(j->sandbox);
		workspaces_drop(j->services->workspaces, w, old);
	}
	workspaces_written(j->services->workspaces, w, before);
}

static void on_changes(struct workspace_store_call *c, const struct workspace_store_reply *r,
		       int *fd)
{
	struct change_job *j = c->arg;

	if (r->code == -ESTALE && j->commit) {
		conflict(j, r, *fd);
	} else if (r->code < 0) {
		refused(j, r);
	} else {
		if (j->commit)
			kept(j, r);
		note(j, "done", r->bytes);
		answer(j, r, *fd);
	}
}

/* ---- in the cell --------------------------------------------------------------------------- */

static struct change_job *of_pack(struct cell_command *c)
{
	return (struct change_job *)((char *)c - offsetof(struct change_job, pack));
}

static void on_started(struct cell_command *c, int pid, int *fds, size_t n_fds)
{
	struct change_job *j = of_pack(c);
	const struct workspace_use *u = &j->sandbox->spec.workspace;
	const struct workspace *w = workspaces_find(j->services->workspaces, j->owner, j->name);
	struct workspace_store_req q = { .op = j->commit ? WORKSPACE_STORE_COMMIT :
							   WORKSPACE_STORE_DIFF };

	(void)pid;
	if (!w || n_fds != 2) {
		fail_text(j, REFUSAL_NOT_FOUND, "no_such_workspace", NULL,
			  "the workspace has been removed");
		return;
	}
	q.max_bytes = w->quota_bytes;
	q.max_files = w->quota_files;
	memcpy(q.key, w->key, sizeof(w->key));
	memcpy(q.tree, u->base, sizeof(q.tree));
	j->call.fn = on_changes;
	j->call.arg = j;
	if (workspace_store_ask(&j->services->workspaces->store, &j->call, &q, fds[1]) < 0)
		fail_text(j, REFUSAL_UNAVAILABLE, "workspace_failed", "see the daemon's log",
			  "the workspace store does not answer");
}

static void on_failed(struct cell_command *c, const struct init_failed *f)
{
	struct change_job *j = of_pack(c);

	fail_text(j, REFUSAL_UNAVAILABLE, "workspace_failed", NULL, strerror(f->error));
}

static void on_in(struct entry *en, struct cell *r)
{
	struct change_job *j = en->arg;
	struct err e = { 0 };

	j->cell = r;
	j->pack = (struct cell_command){ .started = on_started, .failed = on_failed };
	if (cell_pack(r, &j->pack, WORKSPACE_PATH, FILES_WHOLE, &e) < 0)
		fail_text(j, REFUSAL_UNAVAILABLE, "workspace_failed", NULL, e.msg);
}

static void on_refused(struct entry *en, const struct refusal *why)
{
	fail(en->arg, why);
}

/* If the workspace store was asked, it sees the end of the pipe, and answers. */
static void on_gone(struct entry *en, const struct cell_usage *u)
{
	struct change_job *j = en->arg;

	(void)u;
	j->cell = NULL;
	j->sandbox = NULL;
	if (!j->call.call.seq)
		fail_text(j, REFUSAL_CONFLICT, "session_ended", NULL,
			  "the cell ended before its workspace was read");
}

static void on_client_gone(struct request_context *v)
{
	struct change_job *j = v->work;

	j->x = NULL;
	v->work = NULL;
	if (!j->commit)
		end(j);
}

/* ---- requests ------------------------------------------------------------------------------ */

static bool is_cow(struct http_exchange *x, const struct sandbox *s)
{
	const struct workspace_use *u = &s->spec.workspace;

	if (s->state != SANDBOX_RUNNING || s->stopping)
		reply_error(x, 409, "sandbox_stopped", "name", "its changes are lost",
			    "the sandbox is %s: %s",
			    s->stopping ? "being stopped" : sandbox_state_name(s->state),
			    s->reason);
	else if (!u->name[0] || u->mode != WORKSPACE_COW)
		reply_error(
			x, 409, "not_copy_on_write", "name",
			"make the sandbox with {\"workspace\": {\"name\": ..., \"mode\": \"cow\"}}",
			u->name[0] ? "its workspace is mounted %s" :
				     "the sandbox has no workspace%.0s",
			workspace_mode_name(u->mode));
	else
		return true;
	return false;
}

static void begin(struct sandbox *s, struct http_exchange *x, bool commit)
{
	struct services *services = context_of(x)->server->services;
	struct refusal why;

	if (!is_cow(x, s))
		return;
	struct change_job *j = calloc(1, sizeof(*j));

	if (!j) {
		reply_no_memory(x);
		return;
	}
	*j = (struct change_job){
		.entry = { .in = on_in, .refused = on_refused, .gone = on_gone, .arg = j },
		.services = services,
		.sandbox = s,
		.x = x,
		.commit = commit
	};
	random_id(j->id);
	(void)snprintf(j->name, sizeof(j->name), "%s", s->spec.workspace.name);
	(void)snprintf(j->owner, sizeof(j->owner), "%s", s->owner);
	(void)snprintf(j->box, sizeof(j->box), "%s", s->name);
	const struct audit_file a = { services->daemon->ledger, j->owner, j->box, j->id,
				      "workspace.commit" };

	if (commit && audit_file_begin(&a, j->name, NULL, &why) < 0) {
		free(j);
		reply_refusal(x, &why);
		return;
	}
	context_wait(x, j, on_client_gone);
	sandbox_enter(s, &j->entry);
}

void handle_workspace_diff(struct sandbox *s, struct http_exchange *x)
{
	begin(s, x, false);
}

void handle_workspace_commit(struct sandbox *s, struct http_exchange *x)
{
	begin(s, x, true);
}

/* The changes are in the cell: a new cell does not have them. */
void handle_workspace_discard(struct sandbox *s, struct http_exchange *x)
{
	if (!is_cow(x, s))
		return;
	if (s->running) {
		reply_error(x, 409, "session_busy", "name", "wait for it, or interrupt it",
			    "code runs in this sandbox");
		return;
	}
	sandbox_renew(s);
	reply_empty(x, 204);
}
