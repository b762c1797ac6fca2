/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge.c - An archive of a cell's workspace becomes a list of changes and the next generation.
 *
 * There are three trees: the base, which the sandbox began with; the current one, which others may
 * have committed since; and the next, which is made. Entries of the archive that equal the base are
 * taken from the current tree; entries that differ are the sandbox's changes; the sandbox removed
 * the entries that the archive lacks. If others changed a path that the sandbox changed too, that
 * is a conflict, and there will be no next tree.
 *
 * A file that the base has too is compared while it arrives, and becomes a file of its own at the
 * first byte that differs. So a commit with few changes takes little space: unchanged files get
 * second names.
 */
#include "workspace_store/changes.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "tree_store/tree.h"

#define CHUNK (64u << 10)

void merge_begin(struct merge *m)
{
	changes_init(&m->mine);
	changes_init(&m->conflicts);
	m->in = m->out = -1;
}

void merge_end(struct merge *m)
{
	changes_free(&m->mine);
	changes_free(&m->conflicts);
	paths_free(&m->seen);
	fd_close(m->in);
	fd_close(m->out);
}

/* After a conflict nothing is made: there will be no next tree. */
static bool writes(const struct merge *m)
{
	return m->next >= 0 && m->conflicts.n == 0;
}

static int count(struct merge *m, uint64_t bytes, struct err *e)
{
	m->files++;
	m->bytes += bytes;
	if (m->next < 0)
		return 0;
	if (m->files > m->max_files)
		return err_say(e, -EDQUOT, "the workspace may have at most %llu files",
			       (unsigned long long)m->max_files);
	if (m->bytes > m->max_bytes)
		return err_say(e, -EDQUOT, "the workspace may have at most %llu MiB",
			       (unsigned long long)(m->max_bytes >> 20));
	return 0;
}

static int in_trouble(const char *path, int r, struct err *e)
{
	return err_set(e, r, "'%.150s'", path);
}

/* ---- unchanged or not ---------------------------------------------------------------------- */

/* Whether others have changed @path since the base. Trees share unchanged files. */
static int is_others(const struct merge *m, const char *path)
{
	struct stat a, b;

	if (m->alone)
		return 0;
	int r = tree_stat(m->base, path, &a), s = tree_stat(m->current, path, &b);

	if ((r < 0 && r != -ENOENT) || (s < 0 && s != -ENOENT))
		return r < 0 && r != -ENOENT ? r : s;
	if (r < 0 || s < 0)
		return r != s;
	if (S_ISDIR(a.st_mode) && S_ISDIR(b.st_mode))
		return 0;
	return a.st_ino != b.st_ino || a.st_dev != b.st_dev;
}

static bool same_dir(const struct merge *m)
{
	const char *name;
	_fd_ int dir = tree_parent(m->base, m->en.path, false, &name);
	_fd_ int fd = dir < 0 ? -1 : tree_open_dir(dir, name);

	return fd >= 0 && ((m->was.st_mode ^ m->is.st_mode) & 077) == 0 &&
	       tree_same_xattrs(fd, m->en.records, m->en.records_len);
}

static bool same_link(const struct merge *m)
{
	char target[TREE_PATH_MAX];
	const char *name;
	_fd_ int dir = tree_parent(m->base, m->en.path, false, &name);
	ssize_t n = dir < 0 ? -1 : readlinkat(dir, name, target, sizeof(target));

	return n >= 0 && (size_t)n == strlen(m->en.link) &&
	       memcmp(target, m->en.link, (size_t)n) == 0;
}

/* A hard link is unchanged if both names were one file before, and that file is unchanged. */
static bool same_name(const struct merge *m)
{
	struct stat st;

	return tree_stat(m->base, m->en.link, &st) == 0 && st.st_ino == m->was.st_ino &&
	       paths_get(&m->seen, m->en.link) == PATH_SAME;
}

static bool is_same(const struct merge *m)
{
	if (!m->had || (m->was.st_mode & S_IFMT) != (m->is.st_mode & S_IFMT))
		return false;
	switch (m->en.type) {
	case '1':
		return same_name(m);
	case '2':
		return same_link(m);
	case '5':
		return same_dir(m);
	default:
		return (m->was.st_mode & 0777) == (m->is.st_mode & 0777);
	}
}

/* ---- making -------------------------------------------------------------------------------- */

static int copy_up_to(struct merge *m, uint64_t len)
{
	static char chunk[CHUNK];

	for (uint64_t at = 0; at < len;) {
		size_t want = len - at < sizeof(chunk) ? (size_t)(len - at) : sizeof(chunk);
		ssize_t n = pread(m->in, chunk, want, (off_t)at);
		int r = n < 0 ? -errno : n == 0 ? -EIO : fd_write_all(m->out, chunk, (size_t)n);

		if (r < 0)
			return r;
		at += (uint64_t)n;
	}
	return 0;
}

/* The file differs from here on: make it a file of its own, and copy the equal beginning. */
static int part_ways(struct merge *m)
{
	const char *name;

	m->same = false;
	if (!writes(m))
		return 0;
	_fd_ int dir = tree_parent(m->next, m->en.path, true, &name);

	if (dir < 0)
		return dir;
	m->out = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return m->out < 0 ? -errno : copy_up_to(m, m->at);
}

static int finish_file(struct merge *m)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = m->en.mtime } };
	int r = tree_set_xattrs(m->out, m->en.records, m->en.records_len);

	if (r == 0 && (futimens(m->out, times) < 0 || fchmod(m->out, m->en.mode) < 0))
		r = -errno;
	m->out = fd_close(m->out);
	return r;
}

static int make_dir(struct merge *m, int dir, const char *name)
{
	if (mkdirat(dir, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	_fd_ int fd = tree_open_dir(dir, name);

	if (fd < 0)
		return fd;
	if (fchmod(fd, m->en.mode | 0700) < 0)
		return -errno;
	return tree_set_xattrs(fd, m->en.records, m->en.records_len);
}

static int make_name(struct merge *m, int dir, const char *name)
{
	const char *first;
	_fd_ int from = tree_parent(m->next, m->en.link, false, &first);

	if (from < 0)
		return from;
	return linkat(from, first, dir, name, 0) < 0 ? -errno : 0;
}

/* Anything but a regular file. */
static int make(struct merge *m)
{
	const char *name;
	_fd_ int dir = tree_parent(m->next, m->en.path, true, &name);

	if (dir < 0)
		return dir;
	switch (m->en.type) {
	case '1':
		return make_name(m, dir, name);
	case '2':
		return symlinkat(m->en.link, dir, name) < 0 ? -errno : 0;
	case '5':
		return make_dir(m, dir, name);
	default:
		return mknodat(dir, name, S_IFIFO | m->en.mode, 0) < 0 ? -errno : 0;
	}
}

/* The tree of the sandbox's state has every entry of the archive, changed or not. */
static int mirror(struct merge *m, int from, const struct stat *st)
{
	return m->state >= 0 && writes(m) ? tree_link(from, m->en.path, st, m->state) : 0;
}

static int mirror_made(struct merge *m)
{
	struct stat st;
	int r = m->state >= 0 && writes(m) ? tree_stat(m->next, m->en.path, &st) : 0;

	return r < 0 ? r : mirror(m, m->next, &st);
}

/* ---- verdicts ------------------------------------------------------------------------------ */

/* Unchanged since the base: so it is taken from the current tree, if that still has it. */
static int keep(struct merge *m, struct err *e)
{
	struct stat st = m->was;
	int r = paths_put(&m->seen, m->en.path, PATH_SAME);

	if (r == 0)
		r = mirror(m, m->base, &m->was);
	if (r < 0)
		return in_trouble(m->en.path, r, e);
	if (!m->alone)
		r = tree_stat(m->current, m->en.path, &st);
	if (r == -ENOENT)
		return 0;
	if (r == 0 && writes(m))
		r = tree_link(m->current, m->en.path, &st, m->next);
	if (r < 0)
		return in_trouble(m->en.path, r, e);
	return count(m, S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0, e);
}

/* The sandbox changed it. Noted before it is made: a conflict prevents that. */
static int change(struct merge *m, enum change what, struct err *e)
{
	const struct stat *was = m->had ? &m->was : NULL;
	int r = paths_put(&m->seen, m->en.path, PATH_CHANGED), others = is_others(m, m->en.path);

	if (r < 0 || others < 0)
		return in_trouble(m->en.path, r < 0 ? r : others, e);
	if (was && what != CHANGE_MODE && (m->was.st_mode & S_IFMT) != (m->is.st_mode & S_IFMT))
		what = CHANGE_TYPE;
	changes_add(&m->mine, was ? what : CHANGE_ADDED, m->en.path, was, &m->is);
	if (others)
		changes_add(&m->conflicts, was ? what : CHANGE_ADDED, m->en.path, was, &m->is);
	return count(m, m->en.size, e);
}

/* A conflict: others put something else in the place of a file or directory. */
static int settle(struct merge *m, int r, struct err *e)
{
	if ((r == -ENOTDIR || r == -EEXIST || r == -EISDIR || r == -ENOENT) && !m->alone) {
		changes_add(&m->conflicts, CHANGE_TYPE, m->en.path, &m->is, &m->is);
		return 0;
	}
	return r < 0 ? in_trouble(m->en.path, r, e) : 0;
}

/* The content of a file, or its mode, differs from the base. */
static int part_from_base(struct merge *m, enum change what, struct err *e)
{
	int r = change(m, what, e);

	return r < 0 ? r : settle(m, part_ways(m), e);
}

/* ---- the archive --------------------------------------------------------------------------- */

static mode_t kind_of(char type)
{
	return type == '2' ? S_IFLNK : type == '5' ? S_IFDIR : type == '6' ? S_IFIFO : S_IFREG;
}

static int begin_file(struct merge *m, struct err *e)
{
	m->at = 0;
	m->same = m->had && S_ISREG(m->was.st_mode) && (uint64_t)m->was.st_size == m->en.size;
	if (!m->same)
		return part_from_base(m, CHANGE_MODIFIED, e);
	m->in = tree_open(m->base, m->en.path);
	return m->in < 0 ? in_trouble(m->en.path, m->in, e) : 0;
}

static int on_entry(void *arg, const struct tar_entry *en, struct err *e)
{
	struct merge *m = arg;
	int r = tree_stat(m->base, en->path, &m->was);

	if (r < 0 && r != -ENOENT)
		return in_trouble(en->path, r, e);
	if (paths_get(&m->seen, en->path) != PATH_NONE)
		return err_say(e, -EEXIST, "'%.200s' is in the archive twice", en->path);
	m->had = r == 0;
	m->en = *en;
	m->is = (struct stat){ .st_mode = kind_of(en->type) | en->mode,
			       .st_size = en->type == '1' ? -1 : (off_t)en->size };
	if (en->type == '0')
		return begin_file(m, e);
	if (is_same(m))
		return keep(m, e);
	bool mode = m->had && (en->type == '5' || en->type == '6') &&
		    (m->was.st_mode & S_IFMT) == (m->is.st_mode & S_IFMT);

	r = change(m, mode ? CHANGE_MODE : CHANGE_MODIFIED, e);
	if (r == 0)
		r = settle(m, writes(m) ? make(m) : 0, e);
	return r < 0 ? r : settle(m, mirror_made(m), e);
}

static bool is_equal(struct merge *m, const char *data, size_t len)
{
	static char chunk[CHUNK];

	for (size_t at = 0; at < len;) {
		size_t want = len - at < sizeof(chunk) ? len - at : sizeof(chunk);
		ssize_t n = pread(m->in, chunk, want, (off_t)(m->at + at));

		if (n <= 0 || memcmp(chunk, data + at, (size_t)n) != 0)
			return false;
		at += (size_t)n;
	}
	return true;
}

static int on_data(void *arg, const char *data, size_t len, struct err *e)
{
	struct merge *m = arg;
	int r = 0;

	if (m->same && !is_equal(m, data, len)) {
		r = part_from_base(m, CHANGE_MODIFIED, e);
		if (r < 0)
			return r;
	}
	if (!m->same && m->out >= 0)
		r = fd_write_all(m->out, data, len);
	m->at += len;
	return r < 0 ? in_trouble(m->en.path, r, e) : 0;
}

static int on_close(void *arg, struct err *e)
{
	struct merge *m = arg;
	int r = 0;

	if (m->same && (m->was.st_mode & 0777) == m->en.mode &&
	    tree_same_xattrs(m->in, m->en.records, m->en.records_len))
		r = keep(m, e);
	else if (m->same)
		r = part_from_base(m, CHANGE_MODE, e);
	if (r == 0 && m->out >= 0) {
		r = finish_file(m);
		if (r == 0)
			r = mirror_made(m);
		if (r < 0)
			r = in_trouble(m->en.path, r, e);
	}
	m->in = fd_close(m->in);
	m->out = fd_close(m->out);
	return r;
}

const struct tar_sink merge_sink = { on_entry, on_data, on_close };

/* ---- entries that the archive lacks -------------------------------------------------------- */

static int on_rest(void *arg, int dir, const char *name, const char *path, const struct stat *st)
{
	struct merge *m = arg;
	struct stat was;
	struct err e = { 0 };
	int r = 0;

	(void)dir;
	(void)name;
	if (paths_get(&m->seen, path) != PATH_NONE)
		return 0;
	bool had = m->alone || tree_stat(m->base, path, &was) == 0;

	if (had && !m->keep_rest && !S_ISSOCK(st->st_mode)) {
		int others = is_others(m, path);

		changes_add(&m->mine, CHANGE_REMOVED, path, m->alone ? st : &was, NULL);
		if (others > 0)
			changes_add(&m->conflicts, CHANGE_REMOVED, path, &was, NULL);
		return others < 0 ? others : 0;
	}
	if (writes(m))
		r = tree_link(m->current, path, st, m->next);
	return r < 0 ? r : count(m, S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0, &e);
}

int merge_finish(struct merge *m, struct err *e)
{
	static char where[TREE_PATH_MAX];
	int r = tree_walk(m->current, on_rest, m, where);

	return r < 0 ? in_trouble(where, r, e) : 0;
}
