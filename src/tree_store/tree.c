/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree.c - Below a directory, one part of a path at a time.
 *
 * The package store and the workspace store share this file. Changing a mode and setting attributes
 * are calls that only the filter of the workspace store permits: in trees of the package store
 * every directory is 0755, so none needs mending there.
 */
#include "tree_store/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "archive/path.h"
#include "archive/tar.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/num.h"

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452 /* Linux 6.6 */
#endif
#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define XATTR_LIST_BYTES (16u << 10)
#define XATTR_VALUE_BYTES (16u << 10)

/* ---- keys ---------------------------------------------------------------------------------- */

bool tree_key_ok(const char *key)
{
	return strlen(key) == TREE_KEY_LEN && strspn(key, "0123456789abcdef") == TREE_KEY_LEN;
}

int tree_random(char *ret, size_t digits, struct err *e)
{
	unsigned char bytes[TREE_KEY_LEN / 2];

	if (getrandom(bytes, digits / 2, 0) != (ssize_t)(digits / 2))
		return err_set(e, -errno, "getrandom");
	hex_text(bytes, digits / 2, ret);
	return 0;
}

/* ---- directories --------------------------------------------------------------------------- */

bool tree_can_mend(void)
{
	return syscall(SYS_fchmodat2, -1, "", 0, AT_EMPTY_PATH) == 0 || errno != ENOSYS;
}

static int set_mode(int at, mode_t mode)
{
	char path[64];

	if (tree_can_mend())
		return (int)syscall(SYS_fchmodat2, at, "", mode, AT_EMPTY_PATH);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", at);
	return fchmodat(AT_FDCWD, path, mode, 0);
}

/* By its descriptor: the name may be a link by now, which chmod would follow. */
static int mend(int dir, const char *name)
{
	_fd_ int at = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (at < 0 || fstat(at, &st) < 0 || set_mode(at, (st.st_mode & 0777) | 0700) < 0)
		return -EACCES;
	return 0;
}

int tree_open_dir(int dir, const char *name)
{
	int fd = openat(dir, name, DIR_FLAGS);

	if (fd < 0 && errno == EACCES && mend(dir, name) == 0)
		fd = openat(dir, name, DIR_FLAGS);
	return fd < 0 ? -errno : fd;
}

DIR *tree_list(int dir, const char *name)
{
	int fd = tree_open_dir(dir, name);

	if (fd < 0)
		errno = -fd;
	return dir_list(fd);
}

/* ---- paths --------------------------------------------------------------------------------- */

/* @arg: a bool, whether to make a directory that is missing. */
static int enter_dir(void *arg, int at, const char *name, const char *path, size_t len)
{
	int fd = tree_open_dir(at, name);

	(void)path, (void)len;
	if (fd != -ENOENT || !*(const bool *)arg)
		return fd;
	return mkdirat(at, name, 0755) < 0 ? -errno : tree_open_dir(at, name);
}

int tree_parent(int root, const char *path, bool make, const char **ret_name)
{
	return tar_parent(root, path, enter_dir, &make, ret_name);
}

int tree_stat(int root, const char *path, struct stat *ret)
{
	const char *name;
	_fd_ int dir = tree_parent(root, path, false, &name);

	if (dir == -ENOTDIR || dir == -ELOOP)
		return -ENOENT;
	if (dir < 0)
		return dir;
	return fstatat(dir, name, ret, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

int tree_open(int root, const char *path)
{
	const char *name;
	_fd_ int dir = tree_parent(root, path, false, &name);

	if (dir < 0)
		return dir;
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int copy_xattrs(int from, int to)
{
	static char list[XATTR_LIST_BYTES], value[XATTR_VALUE_BYTES];
	ssize_t n = flistxattr(from, list, sizeof(list));

	for (const char *s = list; n > 0 && s < list + n; s += strlen(s) + 1) {
		ssize_t len =
			strncmp(s, "user.", 5) == 0 ? fgetxattr(from, s, value, sizeof(value)) : -1;

		if (len >= 0 && fsetxattr(to, s, value, (size_t)len, 0) < 0)
			return -errno;
	}
	return 0;
}

/* A directory that was made for its content has no mode and attributes of its own: copy them. */
static int link_dir(int from, const char *name, const struct stat *st, int to, const char *new_name)
{
	if (mkdirat(to, new_name, 0755) < 0 && errno != EEXIST)
		return -errno;
	_fd_ int old = tree_open_dir(from, name);
	_fd_ int fd = old < 0 ? old : tree_open_dir(to, new_name);

	if (fd < 0)
		return fd;
	return fchmod(fd, (st->st_mode & 0777) | 0700) < 0 ? -errno : copy_xattrs(old, fd);
}

int tree_link(int from, const char *path, const struct stat *st, int to)
{
	const char *name, *new_name;
	_fd_ int dir = tree_parent(from, path, false, &name);
	_fd_ int into = dir < 0 ? -1 : tree_parent(to, path, true, &new_name);

	if (dir < 0 || into < 0)
		return dir < 0 ? dir : into;
	if (S_ISDIR(st->st_mode))
		return link_dir(dir, name, st, into, new_name);
	return linkat(dir, name, into, new_name, 0) < 0 ? -errno : 0;
}

/* ---- everything below ---------------------------------------------------------------------- */

struct walk {
	tree_fn *fn;
	void *arg;
	char *path;
};

static int walk_dir(struct walk *w, int dir, const char *name, size_t len, unsigned int depth)
{
	_dir_ DIR *d = depth > TREE_DEPTH_MAX ? NULL : tree_list(dir, name);
	const char *entry;
	struct stat st;

	if (!d)
		return depth > TREE_DEPTH_MAX ? -ELOOP : -errno;
	while ((entry = dir_next(d))) {
		int n = snprintf(w->path + len, TREE_PATH_MAX - len, "%s%s", len ? "/" : "", entry);

		if ((size_t)n >= TREE_PATH_MAX - len)
			return -ENAMETOOLONG;
		if (fstatat(dirfd(d), entry, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return -errno;
		int r = w->fn(w->arg, dirfd(d), entry, w->path, &st);

		if (r == 0 && S_ISDIR(st.st_mode))
			r = walk_dir(w, dirfd(d), entry, len + (size_t)n, depth + 1);
		if (r != 0)
			return r;
	}
	if (errno)
		return -errno;
	w->path[len] = '\0';
	return 0;
}

int tree_walk(int root, tree_fn *fn, void *arg, char where[TREE_PATH_MAX])
{
	struct walk w = { fn, arg, where };

	where[0] = '\0';
	return walk_dir(&w, root, ".", 0, 0);
}

/* @below: the directory is part of the tree that is being removed. */
static int unlink_in(int dir, const char *name, int flags, bool below)
{
	int r = unlinkat(dir, name, flags) < 0 ? -errno : 0;

	/* A directory that its owner may not write to. */
	if (r == -EACCES && below && fchmod(dir, 0700) == 0)
		r = unlinkat(dir, name, flags) < 0 ? -errno : 0;
	return r;
}

static int remove_at(int dir, const char *name, unsigned int depth)
{
	int r = unlink_in(dir, name, 0, depth > 0);

	if (r != -EISDIR && r != -EPERM)
		return r == -ENOENT ? 0 : r;
	_dir_ DIR *d = depth > TREE_DEPTH_MAX ? NULL : tree_list(dir, name);
	const char *entry;

	if (!d)
		return depth > TREE_DEPTH_MAX ? -ELOOP : -errno;
	while ((entry = dir_next(d))) {
		r = remove_at(dirfd(d), entry, depth + 1);
		if (r < 0)
			return r;
	}
	return unlink_in(dir, name, AT_REMOVEDIR, depth > 0);
}

int tree_remove(int dir, const char *name)
{
	return remove_at(dir, name, 0);
}

/* ---- attributes ---------------------------------------------------------------------------- */

static const char *xattr_name(const struct tar_record *r, char name[256])
{
	static const size_t skip = sizeof(TAR_XATTR_KEY) - 1;

	if (r->key_len <= skip + 5 || r->key_len - skip >= 256 ||
	    memcmp(r->key, TAR_XATTR_KEY "user.", skip + 5) != 0)
		return NULL;
	memcpy(name, r->key + skip, r->key_len - skip);
	name[r->key_len - skip] = '\0';
	/* overlayfs would obey these. */
	return strlen(name) != r->key_len - skip || strncmp(name, "user.overlay.", 13) == 0 ? NULL :
											      name;
}

bool tree_same_xattrs(int fd, const char *records, size_t len)
{
	static char list[XATTR_LIST_BYTES], value[XATTR_VALUE_BYTES];
	char name[256];
	struct tar_record r;
	size_t at = 0, have = 0, wanted = 0;
	ssize_t n = flistxattr(fd, list, sizeof(list));

	if (n < 0)
		n = 0;
	for (const char *s = list; s < list + n; s += strlen(s) + 1)
		have += strncmp(s, "user.", 5) == 0;
	while (tar_record_next(records, len, &at, &r) == 1) {
		if (!xattr_name(&r, name))
			continue;
		wanted++;
		n = fgetxattr(fd, name, value, sizeof(value));
		if (n < 0 || (size_t)n != r.value_len || memcmp(value, r.value, r.value_len) != 0)
			return false;
	}
	return have == wanted;
}

int tree_set_xattrs(int fd, const char *records, size_t len)
{
	char name[256];
	struct tar_record r;
	size_t at = 0;

	while (tar_record_next(records, len, &at, &r) == 1)
		if (xattr_name(&r, name) && fsetxattr(fd, name, r.value, r.value_len, 0) < 0)
			return -errno;
	return 0;
}
