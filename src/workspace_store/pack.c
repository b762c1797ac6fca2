/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack.c - A tree as an archive, and the differences between two trees.
 *
 * Generations share unchanged files, so two of them are compared without reading a file: the same
 * inode has the same content, mode and attributes. Each generation has its own directories.
 */
#include "workspace_store/changes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/tar_writer.h"
#include "base/err.h"
#include "base/fd.h"
#include "tree_store/tree.h"

#define CHUNK (256u << 10)

static bool is_same(const struct stat *a, const struct stat *b)
{
	if (S_ISDIR(a->st_mode) && S_ISDIR(b->st_mode))
		return ((a->st_mode ^ b->st_mode) & 0777) == 0;
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

/* ---- the archive ----------------------------------------------------------------------------- */

struct pack {
	int tree, from;
	struct tar_writer out;
	uint64_t bytes, files;
	void *names; /* of files with several (archive/tar_writer.h) */
};

static int put_content(struct pack *p, int fd, uint64_t size)
{
	static char chunk[CHUNK];

	for (uint64_t left = size; left > 0;) {
		size_t want = left < sizeof(chunk) ? (size_t)left : sizeof(chunk);
		ssize_t n = read(fd, chunk, want);
		int r = n < 0 ? -errno : n == 0 ? -EIO : p->out.put(p->out.arg, chunk, (size_t)n);

		if (r < 0)
			return r;
		left -= (uint64_t)n;
	}
	p->bytes += size;
	return tar_put_padding(&p->out, size);
}

static int put_file(struct pack *p, int dir, const char *name, const char *path,
		    const struct stat *st)
{
	const char *first = st->st_nlink > 1 ? tar_first_name(&p->names, st, path) : path;
	_fd_ int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat now;

	if (fd < 0 || fstat(fd, &now) < 0)
		return -errno;
	if (!first)
		return -ENOMEM;
	if (first != path)
		return tar_put_stat(&p->out, '1', path, first, st, -1, NULL);
	int r = tar_put_stat(&p->out, '0', path, "", &now, fd, NULL);

	return r < 0 ? r : put_content(p, fd, (uint64_t)now.st_size);
}

static int put_dir(struct pack *p, int dir, const char *name, const char *path,
		   const struct stat *st)
{
	char text[TREE_PATH_MAX + 1];
	_fd_ int fd = tree_open_dir(dir, name);

	(void)snprintf(text, sizeof(text), "%s/", path);
	return fd < 0 ? fd : tar_put_stat(&p->out, '5', text, "", st, fd, NULL);
}

static int on_pack(void *arg, int dir, const char *name, const char *path, const struct stat *st)
{
	struct pack *p = arg;
	char target[TREE_PATH_MAX];
	struct stat was;

	if (p->from >= 0 && tree_stat(p->from, path, &was) == 0 && is_same(&was, st))
		return 0;
	if (S_ISSOCK(st->st_mode)) /* an archive cannot hold it, and nobody listens there */
		return 0;
	p->files++;
	if (S_ISREG(st->st_mode))
		return put_file(p, dir, name, path, st);
	if (S_ISDIR(st->st_mode))
		return put_dir(p, dir, name, path, st);
	if (S_ISFIFO(st->st_mode))
		return tar_put_stat(&p->out, '6', path, "", st, -1, NULL);
	ssize_t n = readlinkat(dir, name, target, sizeof(target) - 1);

	if (n < 0)
		return -errno;
	target[n] = '\0';
	return tar_put_stat(&p->out, '2', path, target, st, -1, NULL);
}

int pack_tree(int tree, int from, int fd, uint64_t *ret_bytes, uint64_t *ret_files, struct err *e)
{
	static char where[TREE_PATH_MAX];
	struct pack p = { .tree = tree, .from = from, .out = { tar_put_fd, &fd } };
	int r = tree_walk(tree, on_pack, &p, where);

	*ret_bytes = p.bytes;
	*ret_files = p.files;
	return r < 0 ? err_set(e, r, "'%.150s'", where) : 0;
}

int pack_end(int fd, struct err *e)
{
	const struct tar_writer out = { tar_put_fd, &fd };
	int r = tar_put_end(&out);

	return r < 0 ? err_set(e, r, "write the end of the archive") : 0;
}

/* ---- differences ----------------------------------------------------------------------------- */

struct compare {
	int other;
	struct changes *changes;
};

static int on_new(void *arg, int dir, const char *name, const char *path, const struct stat *st)
{
	struct compare *c = arg;
	struct stat was;
	int r = tree_stat(c->other, path, &was);

	(void)dir, (void)name;
	if (r < 0 && r != -ENOENT)
		return r;
	if (r < 0)
		changes_add(c->changes, CHANGE_ADDED, path, NULL, st);
	else if ((was.st_mode & S_IFMT) != (st->st_mode & S_IFMT))
		changes_add(c->changes, CHANGE_TYPE, path, &was, st);
	else if (!is_same(&was, st))
		changes_add(c->changes, S_ISDIR(st->st_mode) ? CHANGE_MODE : CHANGE_MODIFIED, path,
			    &was, st);
	return 0;
}

static int on_old(void *arg, int dir, const char *name, const char *path, const struct stat *st)
{
	struct compare *c = arg;
	struct stat is;
	int r = tree_stat(c->other, path, &is);

	(void)dir, (void)name;
	if (r == -ENOENT)
		changes_add(c->changes, CHANGE_REMOVED, path, st, NULL);
	return r == -ENOENT ? 0 : r;
}

int pack_changes(int from, int tree, struct changes *ret, struct err *e)
{
	static char where[TREE_PATH_MAX];
	struct compare to_old = { from, ret }, to_new = { tree, ret };
	int r = tree_walk(tree, on_new, &to_old, where);

	if (r == 0)
		r = tree_walk(from, on_old, &to_new, where);
	return r < 0 ? err_set(e, r, "'%.150s'", where) : 0;
}
