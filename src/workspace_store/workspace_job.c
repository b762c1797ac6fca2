/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace_job.c - The requests to the workspace store, one function each.
 *
 * A tree that is being made has no name that anybody looks for until it is whole and on the disk.
 * The workspace is locked meanwhile, also against jobs of a later worker.
 */
#include "workspace_store/workspace_job.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "tree_store/tree.h"
#include "tree_store/tree_store.h"
#include "workspace_store/changes.h"
#include "workspace_store/pattern.h"
#include "workspace_store/workspace_dir.h"

#define READ_BYTES (256u << 10)

struct job {
	int store_dir, fd;
	const struct workspace_store_req *q;
	struct workspace_store_reply *reply;
	struct promise *promise;
	int answer; /* a descriptor that goes with the reply */
	struct err err;
};

char *job_text(int fd, size_t max, struct err *e)
{
	char *text = fd_read_whole(fd, max, NULL);

	if (!text)
		(void)err_set(e, -errno, "read the text of the request");
	return text;
}

static void report(struct job *j, const struct changes *c)
{
	j->reply->changes = c->n;
	j->reply->cut = c->cut;
	j->answer = fd_memfd("caisson-changes", buf_str(&c->lines), c->lines.len);
}

/* ---- whole workspaces ---------------------------------------------------------------------- */

static int do_sweep(struct job *j)
{
	_mem_ char *known = job_text(j->fd, WORKSPACE_STORE_KNOWN_BYTES, &j->err);

	return known ? workspace_dir_sweep(j->store_dir, known, &j->err) : j->err.code;
}

static int count_one(void *arg, int dir, const char *name, const char *path, const struct stat *st)
{
	struct workspace_store_reply *r = arg;

	(void)dir, (void)name, (void)path;
	r->files++;
	r->bytes += S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0;
	return 0;
}

static int do_look(struct job *j, struct workspace_dir *w)
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
	_mem_ char *text = j->fd < 0 ? NULL : job_text(j->fd, WORKSPACE_STORE_RULES_BYTES, &j->err);

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

static int do_open(struct job *j, struct workspace_dir *w)
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

static int do_view(struct job *j, struct workspace_dir *w)
{
	static struct pattern_rules rules;
	static char where[TREE_PATH_MAX];
	_mem_ char *text = job_text(j->fd, WORKSPACE_STORE_RULES_BYTES, &j->err);
	char name[WORKSPACE_STORE_TREE_MAX], tree[WORKSPACE_STORE_TREE_MAX];

	if (!text || pattern_parse(text, strlen(text), &rules, &j->err) < 0)
		return j->err.code;
	_fd_ int from = workspace_dir_tree(w, j->q->tree, &j->err);
	_fd_ int to = from < 0 ? -1 : workspace_dir_begin(w, name, &j->err);

	if (to < 0)
		return j->err.code;
	struct view v = { from, to, &rules };
	int r = tree_walk(from, show, &v, where);

	(void)snprintf(tree, sizeof(tree), "v%llu.%.8s",
		       j->q->tree[0] ? strtoull(j->q->tree + 1, NULL, 10) :
				       (unsigned long long)w->newest,
		       name + 4);
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

static int do_drop(struct job *j, struct workspace_dir *w)
{
	return workspace_dir_drop(w, j->q->tree, &j->err);
}

/* ---- changes ------------------------------------------------------------------------------- */

/*
 * The tree of a workspace. Symbolic links may lead anywhere: only code in a cell follows them.
 * Paths and the targets of hard links stay in the tree (archive/path.c), and the merge bounds
 * bytes.
 */
static const struct tar_rules rules = { .path_max = 1024,
					.meta_max = 64u << 10,
					.depth_max = 48,
					.max_bytes = UINT64_MAX / 2,
					.max_files = WORKSPACE_STORE_FILES_MAX,
					.kinds = "01256" };

/*
 * The pipe may be non-blocking or not, and change: others hold it too. Return: bytes, 0 at the end,
 * or -errno.
 */
static ssize_t read_some(int fd, char *chunk, struct err *e)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t n;

	while ((n = read(fd, chunk, READ_BYTES)) < 0 && (errno == EINTR || errno == EAGAIN))
		(void)poll(&p, 1, -1);
	return n < 0 ? err_set(e, -errno, "read the archive") : n;
}

static int read_all(int fd, bool cell, struct cell_archive *a, struct err *e)
{
	static char chunk[READ_BYTES];
	ssize_t n = 1;
	int r = 0;

	while (r == 0 && !a->ended && (n = read_some(fd, chunk, e)) > 0)
		r = cell ? cell_archive_feed(a, chunk, (size_t)n) :
			   tar_feed(&a->reader, a->sink, a->arg, chunk, (size_t)n, e);
	if (r < 0 || n < 0)
		return r < 0 ? r : (int)n;
	if (cell && !a->ended)
		return err_say(e, -EPIPE, "the cell ended before its workspace was read");
	if (!tar_ended(&a->reader))
		return err_say(e, -EBADMSG, "the archive has no end");
	if (a->changed) /* nobody wrote the zeros at the end of that file: do not keep them */
		return err_say(e, -EAGAIN,
			       "a file shrank while the workspace was read; try again when nothing "
			       "writes");
	return 0;
}

/* @cell: the output of a file call; otherwise a plain archive. Then the entries it did not have. */
static int merge_archive(struct job *j, bool cell, struct merge *m)
{
	struct cell_archive a = {
		.sink = &merge_sink, .arg = m, .e = &j->err, .reader.rules = &rules
	};
	int r = read_all(j->fd, cell, &a, &j->err);

	cell_archive_free(&a);
	return r < 0 ? r : merge_finish(m, &j->err);
}

static int do_diff(struct job *j, struct workspace_dir *w)
{
	_fd_ int base = workspace_dir_tree(w, j->q->tree, &j->err);
	struct merge m = { .base = base, .current = base, .next = -1, .state = -1, .alone = true };

	if (base < 0)
		return base;
	merge_begin(&m);
	int r = merge_archive(j, true, &m);

	if (r == 0)
		report(j, &m.mine);
	merge_end(&m);
	return r;
}

/* A tree that is being made: removed, unless it gets its name. */
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

/* The trees are made: name them, if there is no conflict. The sandbox's state is named first:
 * without a new generation it means nothing. */
static int conclude(struct job *j, struct workspace_dir *w, const struct merge *m,
		    struct draft *next, struct draft *state)
{
	char tree[WORKSPACE_STORE_TREE_MAX];
	int r = 0;

	if (m->conflicts.n) {
		report(j, &m->conflicts);
		return err_say(&j->err, -ESTALE, "others changed %llu of the changed paths too",
			       (unsigned long long)m->conflicts.n);
	}
	report(j, &m->mine);
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

/* COMMIT and IMPORT: a cell's workspace or a plain archive on top of the newest generation. */
static int take_in(struct job *j, struct workspace_dir *w)
{
	const bool cell = j->q->op == WORKSPACE_STORE_COMMIT;
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
	int r = merge_archive(j, cell, &m);

	if (r == 0)
		r = conclude(j, w, &m, &next, &state);
	draft_end(w, &next);
	draft_end(w, &state);
	merge_end(&m);
	return r;
}

/*
 * The reader may be a bucket far away, so the lock is released: other jobs need not wait for it. If
 * the tree is removed meanwhile, the archive gets no end, so that a reader does not take missing
 * files for removed ones.
 */
static int do_export(struct job *j, struct workspace_dir *w)
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

static int do_changes(struct job *j, struct workspace_dir *w)
{
	_fd_ int tree = workspace_dir_tree(w, j->q->tree, &j->err);
	_fd_ int from = tree < 0 ? -1 : workspace_dir_tree(w, j->q->from, &j->err);
	struct changes c;

	if (from < 0)
		return j->err.code;
	changes_init(&c);
	int r = pack_changes(from, tree, &c, &j->err);

	if (r == 0)
		report(j, &c);
	changes_free(&c);
	return r;
}

/* ---- the table ----------------------------------------------------------------------------- */

static int (*const jobs[WORKSPACE_STORE_OP_MAX_])(struct job *j, struct workspace_dir *w) = {
	[WORKSPACE_STORE_LOOK] = do_look,       [WORKSPACE_STORE_OPEN] = do_open,
	[WORKSPACE_STORE_VIEW] = do_view,       [WORKSPACE_STORE_DROP] = do_drop,
	[WORKSPACE_STORE_DIFF] = do_diff,       [WORKSPACE_STORE_COMMIT] = take_in,
	[WORKSPACE_STORE_IMPORT] = take_in,     [WORKSPACE_STORE_EXPORT] = do_export,
	[WORKSPACE_STORE_CHANGES] = do_changes,
};

/* A request about one workspace, which stays locked until it is done. */
static int in_workspace(struct job *j)
{
	struct workspace_dir w;
	int r = workspace_dir_open(j->store_dir, j->q->key, &w, &j->err);

	if (r < 0)
		return r;
	r = jobs[j->q->op](j, &w);
	j->reply->generation = w.newest;
	workspace_dir_close(&w);
	return r;
}

/* The names come from the front, which reads strangers' bytes: check each of them. */
static bool well_formed(const struct workspace_store_req *q)
{
	bool needs_key = q->op != WORKSPACE_STORE_SWEEP;

	return q->op < WORKSPACE_STORE_OP_MAX_ &&
	       (jobs[q->op] || q->op == WORKSPACE_STORE_REMOVE || !needs_key) &&
	       !(q->flags & ~(uint32_t)WORKSPACE_STORE_FLAGS_) &&
	       memchr(q->key, '\0', sizeof(q->key)) && memchr(q->tree, '\0', sizeof(q->tree)) &&
	       memchr(q->from, '\0', sizeof(q->from)) && (!needs_key || tree_key_ok(q->key)) &&
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
		r = err_say(&j.err, -EINVAL, "unknown or malformed request");
	else if (q->op == WORKSPACE_STORE_REMOVE)
		r = workspace_dir_remove(store_dir, q->key, &j.err);
	else if (q->op == WORKSPACE_STORE_SWEEP)
		r = do_sweep(&j);
	else
		r = in_workspace(&j);
	ret->code = r < 0 ? r : 0;
	if (r < 0)
		(void)snprintf(ret->msg, sizeof(ret->msg), "%.255s", j.err.msg);
	return j.answer;
}
