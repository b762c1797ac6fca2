/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remove_tree.c - A walk by descriptors, one level at a time, that measures and may remove.
 *
 * In a store of an ordinary user the modes of a layer bind that user too: before a directory
 * without permissions is removed, it is given some.
 */
#include "image/image_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

struct walk {
	bool remove;
	dev_t dev;
	uint64_t *bytes;
};

static int visit(struct walk *w, int dir, const char *name, int depth);

static int visit_all(struct walk *w, int dir, const char *name, int depth)
{
	const char *entry;
	int r = 0;

	/* A change by name is safe: the directory is ours, and no other process changes a store. */
	if (w->remove && geteuid() != 0)
		(void)!fchmodat(dir, name, 0700, 0);
	_dir_ DIR *d = dir_list(openat(dir, name, DIR_FLAGS));

	if (!d)
		return -errno;
	while (r == 0 && (entry = dir_next(d)))
		r = visit(w, dirfd(d), entry, depth + 1);
	return r;
}

static int visit(struct walk *w, int dir, const char *name, int depth)
{
	struct stat st;
	int r = 0;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (depth == 0)
		w->dev = st.st_dev;
	if (st.st_dev != w->dev)
		return -EXDEV;
	if (w->bytes) /* each of several names has its share; a directory's links are its own */
		*w->bytes += (uint64_t)st.st_blocks * 512 /
			     (S_ISDIR(st.st_mode) || !st.st_nlink ? 1 : st.st_nlink);
	if (depth > TREE_DEPTH_MAX)
		return -ELOOP;
	if (S_ISDIR(st.st_mode))
		r = visit_all(w, dir, name, depth);
	if (r < 0 || !w->remove)
		return r;
	return unlinkat(dir, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) < 0 ? -errno : 0;
}

int tree_remove(int dir, const char *name, uint64_t *bytes)
{
	struct walk w = { .remove = true, .bytes = bytes };

	return visit(&w, dir, name, 0);
}

void tree_bytes(int dir, const char *name, uint64_t *bytes)
{
	struct walk w = { .bytes = bytes };

	(void)visit(&w, dir, name, 0);
}
