/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files_delete.c - Deleting a name, or a tree.
 *
 * Links are deleted, never followed. A tree may be deeper than there are descriptors or bytes in a
 * path: so one directory is open at a time, the way up goes by "..", and is checked against the
 * directory that was left on the way down. A directory that is moved meanwhile makes the call fail;
 * it never deletes elsewhere.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "init/files.h"

#define LEVELS_MAX 100000u

/* A directory above the one that is being emptied, and the name of the next one down. */
struct level {
	dev_t dev;
	ino_t ino;
	char name[256];
};

struct tree {
	struct level *levels;
	size_t n, cap;
	int fd; /* the directory that is being emptied */
	struct files_io *io;
};

static int push(struct tree *t, const char *name)
{
	struct stat st;

	if (t->n == LEVELS_MAX || mem_grow(&t->levels, &t->cap, t->n + 1, sizeof(*t->levels)) < 0)
		return ENOMEM;
	struct level *l = &t->levels[t->n];
	size_t len = strnlen(name, sizeof(l->name) - 1);

	if (fstat(t->fd, &st) < 0)
		return errno;
	l->dev = st.st_dev;
	l->ino = st.st_ino;
	memcpy(l->name, name, len);
	l->name[len] = '\0';
	t->n++;
	return 0;
}

static int go_down(struct tree *t, const char *name)
{
	int fd = openat(t->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return io_trouble(t->io, name, errno);
	int r = push(t, name);

	if (r) {
		fd_close(fd);
		return r;
	}
	fd_close(t->fd);
	t->fd = fd;
	return 0;
}

/* Back to the directory above, which must still be the one we came from; the emptied one goes. */
static int go_up(struct tree *t)
{
	const struct level *l = &t->levels[t->n - 1];
	struct stat st;
	/* The first one is only named from, and need not be readable. */
	int fd = openat(t->fd, "..", (t->n == 1 ? O_PATH : O_RDONLY) | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return errno;
	fd_close(t->fd);
	t->fd = fd;
	if (fstat(fd, &st) < 0 || st.st_dev != l->dev || st.st_ino != l->ino)
		return ESTALE;
	t->n--;
	if (unlinkat(fd, l->name, AT_REMOVEDIR) == 0) {
		t->io->end.count++;
		return 0;
	}
	/* Not empty: a file was made meanwhile, and the next sweep of the parent finds it. */
	if (errno == ENOENT || (t->n > 0 && (errno == ENOTEMPTY || errno == EEXIST)))
		return 0;
	return io_trouble(t->io, l->name, errno);
}

/* 0: it is gone; EISDIR: a directory with something in it. */
static int remove_one(struct tree *t, const char *name)
{
	if (unlinkat(t->fd, name, 0) == 0 ||
	    (errno == EISDIR && unlinkat(t->fd, name, AT_REMOVEDIR) == 0)) {
		t->io->end.count++;
		return 0;
	}
	if (errno == ENOTEMPTY || errno == EEXIST)
		return EISDIR;
	return errno == ENOENT ? 0 : io_trouble(t->io, name, errno);
}

/* Delete the entries of the open directory, up to a directory that is not empty: go there. */
static int sweep(struct tree *t, bool *ret_down)
{
	_dir_ DIR *d = dir_list(dup(t->fd));
	const char *name;
	int r = 0;

	*ret_down = false;
	if (!d)
		return errno;
	rewinddir(d); /* the copy shares its place with the original */
	while (r == 0 && (name = dir_next(d))) {
		r = remove_one(t, name);
		if (r == EISDIR) {
			*ret_down = true;
			return go_down(t, name);
		}
	}
	return r;
}

static int delete_tree(struct tree *t, const char *name)
{
	int r = go_down(t, name);

	while (r == 0 && t->n > 0) {
		bool down;

		r = sweep(t, &down);
		/* A directory that vanished, or is not a directory any more: sweep again. */
		if (r == ENOENT || r == ENOTDIR || r == ELOOP)
			r = 0;
		else if (r == 0 && !down)
			r = go_up(t);
	}
	return r;
}

static int delete_name(struct tree *t, const char *name, const struct stat *st, bool recursive)
{
	if (S_ISDIR(st->st_mode) && !recursive) {
		if (unlinkat(t->fd, name, AT_REMOVEDIR) < 0)
			return errno;
		t->io->end.count++;
		return 0;
	}
	/* Nothing of a tree is deleted when its own name could not be removed in the end. */
	if (S_ISDIR(st->st_mode) && faccessat(t->fd, ".", W_OK | X_OK, 0) < 0)
		return errno;
	int r = remove_one(t, name);

	return r == EISDIR && recursive ? delete_tree(t, name) : r;
}

int files_delete(const struct files_call *c, struct files_io *io)
{
	struct place p;
	struct stat st;
	struct tree t = { .io = io, .fd = place_enter(&p, c->path, false) };
	int r;

	if (t.fd < 0)
		return -t.fd;
	if (fstatat(t.fd, p.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		r = errno;
	else if (p.slash && !S_ISDIR(st.st_mode))
		r = ENOTDIR;
	else
		r = delete_name(&t, p.name, &st, c->q.flags & FILES_RECURSIVE);
	fd_close(t.fd);
	free(t.levels);
	return r;
}
