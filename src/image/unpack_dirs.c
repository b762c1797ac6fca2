/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack_dirs.c - Opening and making directories below a layer's root, by names of strangers.
 *
 * A path is always resolved from the root by the Linux kernel, with RESOLVE_IN_ROOT: whatever links
 * the archive has made, no lookup leaves the root. The descriptor of the last parent is reused
 * while entries stay in the same directory; it is dropped whenever a name was replaced that may
 * have been a link on its path.
 */
#include "image/unpack_files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"

#define TRIES 1000

struct dir_time {
	char *path;
	struct timespec time;
};

int layer_open(int root, const char *path, int flags)
{
	int fd, tries = TRIES;

	/* EAGAIN: a rename or mount on this machine while a ".." was followed. */
	do
		fd = fd_openat2(root, *path ? path : ".", flags,
				RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
	while (fd < 0 && errno == EAGAIN && --tries > 0);
	return fd < 0 ? -errno : fd;
}

bool layer_is_whiteout(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

int layer_opaque(int parent, const char *name)
{
	_fd_ int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 || fsetxattr(fd, OPAQUE_XATTR, "y", 1, 0) < 0 ? -errno : 0;
}

/* A directory that the archive names only in the paths of its entries. It replaces a whiteout. */
static int make_dir(int parent, const char *name)
{
	struct stat st;

	if (mkdirat(parent, name, 0755) == 0)
		return 0;
	if (errno != EEXIST || fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!layer_is_whiteout(&st))
		return -ENOTDIR;
	if (unlinkat(parent, name, 0) < 0 || mkdirat(parent, name, 0755) < 0)
		return -errno;
	return layer_opaque(parent, name);
}

int layer_make_dirs(int root, char *path)
{
	_fd_ int at = fcntl(root, F_DUPFD_CLOEXEC, 3);
	char *from = path;

	if (at < 0)
		return -errno;
	while (*from) {
		char *slash = strchrnul(from, '/'), was = *slash;
		int fd;

		*slash = '\0';
		fd = layer_open(root, path, O_PATH | O_DIRECTORY);
		if (fd == -ENOENT || fd == -ENOTDIR) {
			int r = make_dir(at, from);

			fd = r < 0 ? r : layer_open(root, path, O_PATH | O_DIRECTORY);
		}
		*slash = was;
		if (fd < 0)
			return fd;
		fd_close(at);
		at = fd;
		from = was ? slash + 1 : slash;
	}
	return TAKE_FD(at);
}

int layer_parent(struct layer_dirs *d, char *path, char **ret_name)
{
	char *slash = strrchr(path, '/');
	const char *dir = slash ? path : "";

	*ret_name = slash ? slash + 1 : path;
	if (slash)
		*slash = '\0';
	if (d->parent >= 0 && strcmp(d->parent_path, dir) == 0)
		return d->parent;
	d->parent = fd_close(d->parent);
	d->parent = layer_open(d->root, dir, O_PATH | O_DIRECTORY);
	if (slash && (d->parent == -ENOENT || d->parent == -ENOTDIR))
		d->parent = layer_make_dirs(d->root, path);
	if (d->parent >= 0)
		memcpy(d->parent_path, dir, strlen(dir) + 1);
	return d->parent;
}

void layer_forget_parent(struct layer_dirs *d)
{
	d->parent_path[0] = '/';
	d->parent_path[1] = '\0';
}

int layer_note_time(struct layer_dirs *d, const char *path, struct timespec time)
{
	if (mem_grow(&d->times, &d->cap_times, d->n_times + 1, sizeof(*d->times)) < 0)
		return -ENOMEM;
	d->times[d->n_times] = (struct dir_time){ strdup(path), time };
	return d->times[d->n_times++].path ? 0 : -ENOMEM;
}

int layer_set_times(struct layer_dirs *d)
{
	int r = 0;

	for (size_t i = 0; i < d->n_times; i++) {
		const struct timespec both[2] = { d->times[i].time, d->times[i].time };
		_fd_ int fd = layer_open(d->root, d->times[i].path, O_RDONLY | O_DIRECTORY);

		/* Another entry may have replaced the directory. */
		if (r == 0 && fd >= 0 && futimens(fd, both) < 0)
			r = -errno;
	}
	return r;
}

void layer_dirs_free(struct layer_dirs *d)
{
	d->parent = fd_close(d->parent);
	for (size_t i = 0; i < d->n_times; i++)
		free(d->times[i].path);
	free(d->times);
	d->times = NULL;
	d->n_times = d->cap_times = 0;
}
