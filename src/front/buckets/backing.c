/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backing.c - Pull workspaces from their buckets, and push them back.
 *
 * Theory of operation. The manifest (bucket/bucket.h) tells whether a workspace and its place in
 * a bucket are the same. At most one of them is ahead: `dirty` means the workspace, and is recorded
 * first, so that it outlives the front. A dirty workspace is only pushed, never pulled; a push that
 * fails is tried again with growing pauses, and meanwhile sandboxes use the local tree. Otherwise
 * the bucket is looked at before a sandbox begins. If it differs from the manifest, all of it is
 * pulled as a new generation, unless sandboxes already use the workspace: they could commit on top
 * of it meanwhile.
 *
 * One operation at a time per workspace. Trees go from the workspace store to caisson-bucket and
 * back on pipes that the front makes and never reads.
 */
#include "front/buckets/backing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "front/buckets/space.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/sandbox.h"
#include "front/sandbox/sandboxes.h"
#include "front/workspaces/workspaces.h"

#define RETRY_MS 5000u
#define RETRY_MAX_MS 300000u

static void step(struct space *p);

static void on_moved(struct bucket_job *j, const struct bucket_reply *r)
{
	struct space *p = j->arg;

	p->files = r->files;
	p->total_files = r->total_files;
	p->bytes = r->bytes;
	p->total_bytes = r->total_bytes;
}

static int ask(struct space *p, enum bucket_op op, int *fds, size_t n,
	       void (*done)(struct bucket_job *, const struct bucket_reply *))
{
	struct workspace *w = space_workspace(p);
	struct bucket_req q = { .op = op,
				.max_bytes = w ? w->quota_bytes : 0,
				.max_files = w ? w->quota_files : 0 };

	memcpy(q.place, p->place, sizeof(q.place));
	memcpy(q.work, p->key, sizeof(q.work));
	p->job.done = done;
	p->job.moved = on_moved;
	return bucket_ask(p->buckets, &p->job, &q, fds, n);
}

/* ---- from the bucket ----------------------------------------------------------------------- */

/* The pull failed. Sandboxes may use the local tree, if there was a pull before. */
static void pull_failed(struct space *p)
{
	p->phase = SPACE_IDLE;
	if (p->here)
		space_answer(p, NULL);
	else
		space_refuse(p);
	step(p);
}

static void on_kept(struct bucket_job *j, const struct bucket_reply *r)
{
	struct space *p = j->arg;
	struct workspace *w = space_workspace(p);

	if (r->code < 0) {
		space_failed(p, "keep", r->code, r->msg);
		pull_failed(p);
		return;
	}
	if (w)
		w->generation = p->generation;
	space_succeeded(p, "pull");
	p->here = true;
	p->phase = SPACE_IDLE;
	space_answer(p, NULL);
	step(p);
}

/* Both ends of the pipe have reported; caisson-bucket's reason is the better one. */
static void end_pull(struct space *p)
{
	if (!p->pulled || !p->imported)
		return;
	if (p->code < 0) {
		pull_failed(p);
		return;
	}
	p->phase = SPACE_KEEPING;
	int r = ask(p, BUCKET_KEEP, NULL, 0, on_kept);

	if (r < 0) {
		space_failed(p, "keep", r, "caisson-bucket is gone");
		pull_failed(p);
	}
}

static void on_pulled(struct bucket_job *j, const struct bucket_reply *r)
{
	struct space *p = j->arg;

	on_moved(j, r);
	p->pulled = true;
	if (r->code < 0)
		space_failed(p, "pull", r->code, r->msg);
	end_pull(p);
}

static void on_imported(struct workspace_store_call *c, const struct workspace_store_reply *r,
			int *fd)
{
	struct space *p = c->arg;

	(void)fd;
	p->imported = true;
	p->generation = r->generation;
	if (r->code < 0 && (!p->pulled || p->code == 0)) {
		space_failed(p, "import", r->code, r->msg);
		if (r->code != -EBADMSG) /* -EBADMSG: the archive ended, so the pull has, too */
			bucket_stop(&p->job);
		p->pulled |= r->code != -EBADMSG;
	}
	end_pull(p);
}

static int begin_pull(struct space *p)
{
	struct workspace *w = space_workspace(p);
	struct workspace_store_req q = { .op = WORKSPACE_STORE_IMPORT,
					 .flags = WORKSPACE_STORE_REPLACE };
	int pair[2];

	if (!w)
		return -ENOENT;
	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	_fd_ int in = pair[0];

	q.max_bytes = w->quota_bytes;
	q.max_files = w->quota_files;
	memcpy(q.key, w->key, sizeof(w->key));
	p->phase = SPACE_PULLING;
	p->pulled = p->imported = false;
	p->code = 0;
	p->import.fn = on_imported;
	int r = ask(p, BUCKET_PULL, &pair[1], 1, on_pulled);

	if (r == 0)
		r = workspace_store_ask(&p->buckets->workspaces->store, &p->import, &q, in);
	if (r < 0)
		bucket_stop(&p->job);
	return r;
}

/* Somebody has it open, and may commit to it. */
static bool is_used(const struct space *p)
{
	const struct workspace *w = space_workspace(p);

	for (struct sandbox *s = NULL; w && (s = workspaces_user(p->buckets->workspaces, w, s));)
		if (s->spec.workspace.tree[0])
			return true;
	return false;
}

static void on_looked(struct bucket_job *j, const struct bucket_reply *r)
{
	struct space *p = j->arg;

	p->here = r->code != -ENOENT;
	if (r->code < 0 && p->here) {
		space_failed(p, "look", r->code, r->msg);
		pull_failed(p);
	} else if (p->here && (!r->changed || is_used(p))) {
		p->phase = SPACE_IDLE;
		space_answer(p, NULL);
		step(p);
	} else {
		int code = begin_pull(p);

		if (code < 0) {
			space_failed(p, "pull", code, "it cannot be started");
			pull_failed(p);
		}
	}
}

/* ---- to the bucket ------------------------------------------------------------------------- */

static void on_retry(struct timer *t)
{
	step(t->arg);
}

static void schedule(struct space *p)
{
	uint64_t ms = (uint64_t)RETRY_MS << (p->fails < 6 ? p->fails : 6);

	p->fails++;
	p->retry.fn = on_retry;
	p->retry.arg = p;
	timer_after(p->buckets->loop, &p->retry,
		    (ms < RETRY_MAX_MS ? ms : RETRY_MAX_MS) * CLOCK_NS_PER_MS);
}

static void push_failed(struct space *p, int code, const char *why)
{
	space_failed(p, "push", code, why);
	p->phase = SPACE_IDLE;
	schedule(p);
	space_answer(p, NULL); /* the local tree is the newer one */
}

static void on_pushed(struct bucket_job *j, const struct bucket_reply *r)
{
	struct space *p = j->arg;

	on_moved(j, r);
	if (r->code < 0) {
		push_failed(p, r->code, r->msg);
		return;
	}
	space_succeeded(p, "push");
	(void)snprintf(p->why, sizeof(p->why), "%s", r->msg); /* files that a bucket cannot hold */
	p->phase = SPACE_IDLE;
	p->dirty = p->again;
	space_save(p);
	step(p);
}

/* One of the two archives of a push. 0 with the end to be read, or a negative errno. */
static int export(struct space *p, int *ret)
{
	struct workspace_store_req q = { .op = WORKSPACE_STORE_EXPORT };
	int pair[2];

	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	_fd_ int out = pair[1];

	memcpy(q.key, p->key, sizeof(p->key));
	*ret = pair[0];
	return workspace_store_ask(&p->buckets->workspaces->store, NULL, &q, out);
}

static void begin_push(struct space *p)
{
	int fds[2] = { -1, -1 };
	int r = export(p, &fds[0]);

	p->phase = SPACE_PUSHING;
	p->again = false;
	if (r == 0)
		r = export(p, &fds[1]);
	if (r == 0)
		r = ask(p, BUCKET_PUSH, fds, 2, on_pushed);
	fd_close(fds[0]);
	fd_close(fds[1]);
	if (r < 0)
		push_failed(p, r, "it cannot be started");
}

/* ---- the next step ------------------------------------------------------------------------- */

static void step(struct space *p)
{
	if (p->phase != SPACE_IDLE || !space_workspace(p))
		return;
	if (p->dirty && !p->retry.loop) {
		begin_push(p);
	} else if (p->dirty) {
		space_answer(p, NULL); /* a retry follows */
	} else if (p->waiters) {
		p->phase = SPACE_LOOKING;
		int r = ask(p, BUCKET_LOOK, NULL, 0, on_looked);

		if (r < 0) {
			space_failed(p, "look", r, "caisson-bucket is gone");
			pull_failed(p);
		}
	}
}

static void fill(struct buckets *buckets, struct workspace *w, workspace_done_fn *done, void *arg)
{
	struct space *p = space_of(buckets, w);

	if (!p || space_wait(p, done, arg) < 0) {
		struct refusal why;

		(void)refusal_no_memory(&why);
		done(w, arg, &why);
		return;
	}
	/* A workspace that is being pushed is ahead: nothing would be pulled, so do not wait. */
	if (p->phase == SPACE_PUSHING)
		space_answer(p, NULL);
	else
		step(p);
}

static void written(struct buckets *buckets, struct workspace *w, uint64_t old_generation)
{
	struct space *p = space_of(buckets, w);

	(void)old_generation;
	if (!p)
		return;
	p->again = true;
	p->dirty = true;
	space_save(p);
	timer_cancel(&p->retry);
	step(p);
}

static void tell(struct buckets *buckets, const struct workspace *w, struct json *j)
{
	static const char *const doing[] = { NULL, "looking", "pulling", "pulling", "pushing" };
	const struct space *p = space_of(buckets, w);

	if (!p)
		return;
	json_key(j, "bucket");
	json_object_begin(j);
	json_member_str(j, "state",
			doing[p->phase]    ? doing[p->phase] :
			p->code == -ESTALE ? "conflict" :
			p->dirty           ? "changed" :
					     "synced");
	if (p->why[0])
		json_member_str(j, p->code < 0 ? "error" : "note", p->why);
	if (doing[p->phase]) {
		json_member_uint(j, "files", p->files);
		json_member_uint(j, "total_files", p->total_files);
		json_member_uint(j, "bytes", p->bytes);
		json_member_uint(j, "total_bytes", p->total_bytes);
	}
	json_object_end(j);
}

static bool is_ahead(struct buckets *buckets, const struct workspace *w)
{
	const struct space *p = space_of(buckets, w);

	return p && (p->dirty || p->phase != SPACE_IDLE);
}

static void on_forgot(struct bucket_job *j, const struct bucket_reply *r)
{
	(void)r; /* a manifest that stays is never asked for again */
	free(j);
}

/* The workspace is gone. The bucket keeps its content. */
static void forgotten(struct buckets *buckets, const struct workspace *w)
{
	struct space *p = space_of(buckets, w);
	struct bucket_job *j = p ? calloc(1, sizeof(*j)) : NULL;
	struct bucket_req q = { .op = BUCKET_FORGET };

	if (j) {
		memcpy(q.place, p->place, sizeof(q.place));
		memcpy(q.work, p->key, sizeof(q.work));
		j->done = on_forgot;
		if (bucket_ask(buckets, j, &q, NULL, 0) < 0)
			free(j);
	}
	if (p)
		space_drop(p);
}

static bool backs(const struct buckets *buckets, const struct workspace *w)
{
	char ignored[BUCKET_PLACE_MAX + 1];

	return space_place(&buckets->daemon->config, w, ignored);
}

static const struct workspace_backing ops = {
	.backs = backs,
	.fill = fill,
	.written = written,
	.tell = tell,
	.is_ahead = is_ahead,
	.forgotten = forgotten,
};

void backing_start(struct buckets *buckets)
{
	if (!buckets->daemon->config.workspace_buckets[0])
		return;
	buckets->workspaces->backing = &ops;
	for (struct workspace *w = buckets->workspaces->all; w; w = w->next) {
		struct space *p = backs(buckets, w) ? space_of(buckets, w) : NULL;

		if (p)
			step(p);
	}
}
