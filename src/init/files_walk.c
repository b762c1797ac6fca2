/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files_walk.c - A walk that does not recurse and does not use paths.
 *
 * One descriptor per level, so a tree may be deeper than a path is long, and a directory that is
 * moved meanwhile is still the directory that was seen. Entries that vanish meanwhile are skipped.
 * It does not go into /proc.
 */
#include "init/files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/statfs.h>

#include "base/fd.h"

struct level {
	DIR *dir;
	dev_t dev;
	size_t path_len; /* of the directory itself, with the slash behind it */
};

static bool is_proc(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

/* @fd becomes the level's. */
static int enter(struct level *l, int fd, size_t path_len)
{
	struct stat st;

	l->dir = dir_list(fd);
	if (!l->dir || fstat(fd, &st) < 0)
		return errno;
	l->dev = st.st_dev;
	l->path_len = path_len;
	return 0;
}

/* 0: entered; WALK_STOP: not entered; or an errno. */
static int go_down(struct walk *w, struct level *l, const char *name, const struct stat *st)
{
	int fd = openat(dirfd(l->dir), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	size_t len = strlen(w->path);

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
		return WALK_STOP;
	if (fd < 0) {
		w->cut = true;
		return w->strict ? errno : WALK_STOP;
	}
	if (st->st_dev != l->dev && is_proc(fd)) {
		w->cut = true;
		fd_close(fd);
		return WALK_STOP;
	}
	w->path[len] = '/';
	w->path[len + 1] = '\0';
	return enter(l + 1, fd, len + 1);
}

static int set_name(struct walk *w, size_t at, const char *name)
{
	size_t n = strlen(name);

	if (n > 255)
		return ENAMETOOLONG;
	memcpy(w->path + at, name, n + 1);
	return 0;
}

/* One entry of the level; *@ret_down when the next one is in the level below. */
static int step(struct walk *w, struct level *l, const char *name, bool deepest, bool *ret_down)
{
	struct stat st;
	int r = set_name(w, l->path_len, name);

	*ret_down = false;
	if (r)
		return r;
	if (fstatat(dirfd(l->dir), name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : errno;
	r = w->visit(w, dirfd(l->dir), name, w->path, &st);
	if (r || !S_ISDIR(st.st_mode))
		return r;
	if (deepest) {
		w->cut = true;
		return w->strict ? ENAMETOOLONG : 0;
	}
	r = go_down(w, l, name, &st);
	*ret_down = r == 0;
	return r == WALK_STOP ? 0 : r;
}

int walk_dir(struct walk *w, int fd)
{
	static struct level levels[FILES_DEPTH_MAX + 1];
	size_t n = 0;
	int r = enter(&levels[0], fd, 0);

	w->path[0] = '\0';
	if (r)
		return r;
	for (n = 1; n > 0 && r == 0;) {
		struct level *l = &levels[n - 1];
		bool down;

		const char *name = dir_next(l->dir);

		if (!name) {
			/* A directory that was deleted while we read it has no more entries. */
			r = errno == ENOENT ? 0 : errno;
			(void)closedir(l->dir);
			n--;
			continue;
		}
		r = step(w, l, name, n > w->depth, &down);
		n += down;
	}
	while (n > 0)
		(void)closedir(levels[--n].dir);
	return r == WALK_STOP ? 0 : r;
}
