/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job.c - What is asked of the workspace store, one function each.
 *
 * A tree that is being made is out of everybody's sight until it is whole and on the disk, and the
 * workspace is locked meanwhile, also against the workers of a workspace store that was started
 * after ours was killed.
 */
#include "workspace_store/job.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "workspace_store/handover.h"
#include "workspace_store/merge.h"
#include "workspace_store/pack.h"
#include "workspace_store/pattern.h"
#include "workspace_store/stream.h"
#include "workspace_store/tree.h"
#include "workspace_store/workspace_dir.h"

struct job {
	int store_dir, fd;
	const struct workspace_store_req *q;
	struct workspace_store_reply *reply;
	struct promise *promise;
	int answer; /* a descriptor that goes with the reply */
	struct err err;
};

static void say_changes(struct job *j, const struct changes *c)
{
	j->reply->changes = c->n;
	j->reply->cut = c->cut;
	j->answer = changes_memfd(c);
}

/* All of what came with the request, as text. */
static char *read_text(struct job *j)
{
	char *text = calloc(1, WORKSPACE_STORE_RULES_BYTES + 1);
	ssize_t n = 0;

	if (text && j->fd >= 0)
		n = pread(j->fd, text, WORKSPACE_STORE_RULES_BYTES, 0);
	if (!text || n < 0) {
		(void)err_set(&j->err, text ? -errno : -ENOMEM, "read the request");
		free(text);
		return NULL;
	}
	return text;
}

/* ---- whole workspaces ---------------------------------------------------------------------- */

static int do_remove(struct job *j)
{
	return workspace_dir_remove(j->store_dir, j->q->key, &j->err);
}

static int do_sweep(struct job *j)
{
	struct stat st;
	int r = j->fd < 0 || fstat(j->fd, &st) < 0 ? -EBADF : 0;
	_mem_ char *known = r < 0 ? NULL : calloc(1, (size_t)st.st_size + 1);

	if (r < 0 || !known || pread(j->fd, known, (size_t)st.st_size, 0) != (ssize_t)st.st_size)
		return err_set(&j->err, r < 0 ? r : -EIO, "read what is to be kept");
	return workspace_dir_sweep(j->store_dir, known, &j->err);
}

static int count_one(void *arg, int dir, const char *name, const char *path, const struct stat *st)
{
	struct workspace_store_reply *r = arg;

	(void)dir, (void)name, (void)path;
	r->files++;
	r->bytes += S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0;
	return 0;
}

static int do_look(struct job *j, const struct workspace_dir *w)
{
	static char where[TREE_PATH_MAX];
	_fd_ int tree = workspace_dir_tree(w, "", &j->err);
	struct stat top, at;
	int r = tree;

	j->reply->volume = fstat(j->store_dir, &top) == 0 && fstat(w->dir, &at) == 0 &&
			   top.st_dev != at.st_dev;
	if (tree >= 0 && j->q->flags & WORKSPACE_STORE_COUNT)
		r = tree_walk(tree, count_one, j->reply, where);
	return r < 0 && !j->err.code ? err_set(&j->err, r, "'%.150s'", where) : r;
}

/* ---- trees --------------------------------------------------------------------------------- */

static int make_dirs(struct job *j, int tree)
{
	_mem_ char *text = j->fd < 0 ? NULL : read_text(j);

	for (char *s = text, *end; s && *s; s = end) {
		const char *name;
		int r;

		end = s + strcspn(s, "\n");
		if (*end)
			*end++ = '\0';
		_fd_ int dir = tree_parent(tree, s, true, &name);

		r = dir < 0 ? dir : mkdirat(dir, name, 0755) < 0 && errno != EEXIST ? -errno : 0;
		if (r < 0)
			return err_set(&j->err, r, "make '%.150s' in the workspace", s);
	}
	return j->err.code;
}

static int do_open(struct job *j, const struct workspace_dir *w)
{
	_fd_ int tree = workspace_dir_tree(w, j->q->tree, &j->err);

	if (tree < 0 || make_dirs(j, tree) < 0)
		return j->err.code;
	if (j->q->tree[0])
		memcpy(j->reply->tree, j->q->tree, WORKSPACE_STORE_TREE_MAX);
	else
		workspace_dir_generation(j->reply->tree, w->newest);
	j->answer = TAKE_FD(tree);
	return 0;
}

struct view {
	int from, to;
	const struct pattern_rules *rules;
};

static int show(void *arg, int dir, const char *name, const char *path, const struct stat *st)
{
	const struct view *v = arg;

	(void)dir, (void)name;
	return pattern_visible(v->rules, path) ? tree_link(v->from, path, st, v->to) : 0;
}

static int do_view(struct job *j, const struct workspace_dir *w)
{
	static struct pattern_rules rules;
	static char where[TREE_PATH_MAX];
	_mem_ char *text = read_text(j);
	char name[WORKSPACE_STORE_TREE_MAX], tree[WORKSPACE_STORE_TREE_MAX];

	if (!text || pattern_parse(text, strlen(text), &rules, &j->err) < 0)
		return j->err.code;
	_fd_ int from = workspace_dir_tree(w, "", &j->err);
	_fd_ int to = from < 0 ? -1 : workspace_dir_begin(w, name, &j->err);

	if (to < 0)
		return j->err.code;
	struct view v = { from, to, &rules };
	int r = tree_walk(from, show, &v, where);

	(void)snprintf(tree, sizeof(tree), "v%llu.%.8s", (unsigned long long)w->newest, name + 4);
	if (r < 0) {
		workspace_dir_abandon(w, name);
		return err_set(&j->err, r, "'%.150s'", where);
	}
	if (workspace_dir_finish(w, name, tree, &j->err) < 0)
		return j->err.code;
	memcpy(j->reply->tree, tree, sizeof(tree));
	j->answer = TAKE_FD(to);
	return 0;
}

static int do_drop(struct job *j, const struct workspace_dir *w)
{
	return workspace_dir_drop(w, j->q->tree, &j->err);
}

/* ---- what changed -------------------------------------------------------------------------- */

static int do_diff(struct job *j, const struct workspace_dir *w)
{
	_fd_ int base = workspace_dir_tree(w, j->q->tree, &j->err);
	struct merge m = { .base = base, .current = base, .next = -1, .state = -1, .alone = true };

	if (base < 0)
		return base;
	merge_begin(&m);
	int r = stream_cell(j->fd, &m, &j->err);

	if (r == 0)
		r = merge_finish(&m, &j->err);
	if (r == 0)
		say_changes(j, &m.mine);
	merge_end(&m);
	return r;
}

/* A tree that is being made: abandoned, unless it was given its name. */
struct draft {
	int fd;
	char name[WORKSPACE_STORE_TREE_MAX]; /* empty: none */
};

static void draft_end(const struct workspace_dir *w, struct draft *d)
{
	d->fd = fd_close(d->fd);
	if (d->name[0])
		workspace_dir_abandon(w, d->name);
}

static int draft_finish(const struct workspace_dir *w, struct draft *d, const char *tree,
			struct err *e)
{
	int r = workspace_dir_finish(w, d->name, tree, e);

	d->name[0] = '\0'; /* finished, or gone */
	return r;
}

/* It has been made; is it to be the next generation? What the sandbox has is first: without the
 * other it is nothing. */
static int conclude(struct job *j, struct workspace_dir *w, const struct merge *m,
		    struct draft *next, struct draft *state)
{
	char tree[WORKSPACE_STORE_TREE_MAX];
	int r = 0;

	if (m->conflicts.n) {
		say_changes(j, &m->conflicts);
		return err_say(
			&j->err, -ESTALE,
			"%llu of the paths that were changed have been changed by others too",
			(unsigned long long)m->conflicts.n);
	}
	say_changes(j, &m->mine);
	j->reply->bytes = m->bytes;
	j->reply->files = m->files;
	if (m->mine.n == 0)
		return 0;
	workspace_dir_generation(tree, w->newest + 1);
	memcpy(j->reply->tree, tree, sizeof(tree));
	if (state->name[0]) {
		(void)snprintf(j->reply->tree, WORKSPACE_STORE_TREE_MAX, "v%llu.%.8s",
			       (unsigned long long)(w->newest + 1), state->name + 4);
		r = draft_finish(w, state, j->reply->tree, &j->err);
	}
	if (r == 0) {
		promise_make(j->promise, j->reply, j->q->key, w->newest + 1, next->fd);
		r = draft_finish(w, next, tree, &j->err);
	}
	if (r == 0)
		w->newest++;
	else
		promise_drop(j->promise);
	return r;
}

/* A cell's workspace (@cell), or an archive, on top of the newest generation. */
static int take_in(struct job *j, struct workspace_dir *w, bool cell)
{
	char newest[WORKSPACE_STORE_TREE_MAX];
	struct draft next = { .fd = -1 }, state = { .fd = -1 };
	_fd_ int base = workspace_dir_tree(w, j->q->tree, &j->err);
	_fd_ int current = base < 0 ? -1 : workspace_dir_tree(w, "", &j->err);

	workspace_dir_generation(newest, w->newest);
	bool alone = !j->q->tree[0] || strcmp(j->q->tree, newest) == 0;

	if (current >= 0)
		next.fd = workspace_dir_begin(w, next.name, &j->err);
	if (next.fd >= 0 && !alone)
		state.fd = workspace_dir_begin(w, state.name, &j->err);
	if (j->err.code) {
		draft_end(w, &next);
		draft_end(w, &state);
		return j->err.code;
	}
	struct merge m = { .base = base,
			   .current = current,
			   .next = next.fd,
			   .state = state.fd,
			   .alone = alone,
			   .keep_rest = !cell && !(j->q->flags & WORKSPACE_STORE_REPLACE),
			   .max_bytes = j->q->max_bytes,
			   .max_files = j->q->max_files };

	merge_begin(&m);
	int r = cell ? stream_cell(j->fd, &m, &j->err) : stream_plain(j->fd, &m, &j->err);

	if (r == 0)
		r = merge_finish(&m, &j->err);
	if (r == 0)
		r = conclude(j, w, &m, &next, &state);
	draft_end(w, &next);
	draft_end(w, &state);
	merge_end(&m);
	return r;
}

static int do_commit(struct job *j, struct workspace_dir *w)
{
	return take_in(j, w, true);
}

static int do_import(struct job *j, struct workspace_dir *w)
{
	return take_in(j, w, false);
}

/*
 * The reader may be a bucket far away: nobody waits for it who wants to look at the workspace, open
 * it or commit. If the tree goes meanwhile the archive gets no end, so that what is missing in it
 * is not taken for removed.
 */
static int do_export(struct job *j, const struct workspace_dir *w)
{
	char name[WORKSPACE_STORE_TREE_MAX];
	_fd_ int tree = workspace_dir_tree(w, j->q->tree, &j->err);
	_fd_ int from = tree < 0 || !j->q->from[0] ? -1 :
						     workspace_dir_tree(w, j->q->from, &j->err);

	if (j->err.code)
		return j->err.code;
	workspace_dir_generation(name, w->newest);
	if (j->q->tree[0])
		(void)snprintf(name, sizeof(name), "%s", j->q->tree);
	workspace_dir_unlock(w);
	int r = pack_tree(tree, from, j->fd, &j->reply->bytes, &j->reply->files, &j->err);

	if (r == 0 &&
	    (!workspace_dir_has(w, j->store_dir, j->q->key, name, tree) ||
	     (from >= 0 && !workspace_dir_has(w, j->store_dir, j->q->key, j->q->from, from))))
		r = err_say(&j->err, -ESTALE, "the tree was removed while it was packed");
	return r == 0 ? pack_end(j->fd, &j->err) : r;
}

static int do_changes(struct job *j, const struct workspace_dir *w)
{
	_fd_ int tree = workspace_dir_tree(w, j->q->tree, &j->err);
	_fd_ int from = tree < 0 ? -1 : workspace_dir_tree(w, j->q->from, &j->err);
	struct changes c;

	if (from < 0)
		return j->err.code;
	changes_init(&c);
	int r = pack_changes(from, tree, &c, &j->err);

	if (r == 0)
		say_changes(j, &c);
	changes_free(&c);
	return r;
}

/* ---- the table ----------------------------------------------------------------------------- */

static int in_ward(struct job *j)
{
	struct workspace_dir w;
	int r = workspace_dir_open(j->store_dir, j->q->key, &w, &j->err);

	if (r < 0)
		return r;
	switch (j->q->op) {
	case WORKSPACE_STORE_LOOK:
		r = do_look(j, &w);
		break;
	case WORKSPACE_STORE_OPEN:
		r = do_open(j, &w);
		break;
	case WORKSPACE_STORE_VIEW:
		r = do_view(j, &w);
		break;
	case WORKSPACE_STORE_DROP:
		r = do_drop(j, &w);
		break;
	case WORKSPACE_STORE_DIFF:
		r = do_diff(j, &w);
		break;
	case WORKSPACE_STORE_COMMIT:
		r = do_commit(j, &w);
		break;
	case WORKSPACE_STORE_IMPORT:
		r = do_import(j, &w);
		break;
	case WORKSPACE_STORE_EXPORT:
		r = do_export(j, &w);
		break;
	case WORKSPACE_STORE_CHANGES:
		r = do_changes(j, &w);
		break;
	default:
		r = err_say(&j->err, -EINVAL, "no such request");
	}
	j->reply->generation = w.newest;
	workspace_dir_close(&w);
	return r;
}

/* Names are the front's, and the front reads strangers' bytes: each of them is checked. */
static bool well_formed(const struct workspace_store_req *q)
{
	bool needs_key = q->op != WORKSPACE_STORE_SWEEP;

	return q->op > 0 && q->op < WORKSPACE_STORE_OP_MAX_ &&
	       !(q->flags & ~(uint32_t)WORKSPACE_STORE_FLAGS_) &&
	       memchr(q->key, '\0', sizeof(q->key)) && memchr(q->tree, '\0', sizeof(q->tree)) &&
	       memchr(q->from, '\0', sizeof(q->from)) &&
	       (!needs_key || workspace_dir_key_ok(q->key)) &&
	       (!q->tree[0] || workspace_dir_tree_ok(q->tree)) &&
	       (!q->from[0] || workspace_dir_tree_ok(q->from));
}

int job_run(int store_dir, const struct workspace_store_req *q, int fd, struct promise *p,
	    struct workspace_store_reply *ret)
{
	struct job j = {
		.store_dir = store_dir, .fd = fd, .q = q, .reply = ret, .promise = p, .answer = -1
	};
	int r;

	if (!well_formed(q))
		r = err_say(&j.err, -EINVAL, "no such request");
	else if (q->op == WORKSPACE_STORE_REMOVE)
		r = do_remove(&j);
	else if (q->op == WORKSPACE_STORE_SWEEP)
		r = do_sweep(&j);
	else
		r = in_ward(&j);
	ret->code = r < 0 ? r : 0;
	if (r < 0)
		(void)snprintf(ret->msg, sizeof(ret->msg), "%.255s", j.err.msg);
	return j.answer;
}
