/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seal.c - A hash of everything that a cell can see of a layer: names, kinds, owners, modes, times,
 * content.
 *
 * Names are taken in the order of their bytes, so that the hash does not depend on the order in
 * which a directory is read. Runs in caisson-unpack, which may read files that their owner could
 * not.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "image/image_store.h"
#include "image/unpack.h"

#define CHUNK (256u << 10)

static char chunk[CHUNK];

static int add_content(struct hash *h, int fd)
{
	ssize_t n;

	while ((n = read(fd, chunk, CHUNK)) > 0)
		hash_add(h, chunk, (size_t)n);
	return n < 0 ? -errno : 0;
}

static void add_head(struct hash *h, const char *name, const struct stat *st, bool opaque)
{
	const uint64_t words[] = { st->st_mode,
				   st->st_uid,
				   st->st_gid,
				   S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0,
				   (uint64_t)st->st_mtim.tv_sec,
				   (uint64_t)st->st_mtim.tv_nsec,
				   st->st_rdev,
				   opaque };

	hash_add(h, name, strlen(name) + 1);
	hash_add(h, words, sizeof(words));
}

static int plain_names(const struct dirent *en)
{
	return strcmp(en->d_name, ".") != 0 && strcmp(en->d_name, "..") != 0;
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int add_entry(struct hash *h, int dir, const char *name, unsigned int depth);

static int add_dir(struct hash *h, int fd, unsigned int depth)
{
	struct dirent **names = NULL;
	int n = scandirat(fd, ".", &names, plain_names, by_bytes), r = n < 0 ? -errno : 0;

	for (int i = 0; i < n; i++) {
		if (r == 0)
			r = add_entry(h, fd, names[i]->d_name, depth + 1);
		free(names[i]);
	}
	free(names);
	/* The end of the directory, so that its entries and those after it cannot be confused. */
	hash_add(h, "/", 2);
	return r;
}

static int add_entry(struct hash *h, int dir, const char *name, unsigned int depth)
{
	struct stat st;

	if (depth > UNPACK_DEPTH_MAX + 1)
		return -ELOOP;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
		ssize_t n = S_ISLNK(st.st_mode) ? readlinkat(dir, name, chunk, CHUNK) : 0;

		if (n < 0)
			return -errno;
		add_head(h, name, &st, false);
		hash_add(h, chunk, (size_t)n);
		return 0;
	}
	_fd_ int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	add_head(h, name, &st, fgetxattr(fd, OPAQUE_XATTR, chunk, CHUNK) > 0);
	return S_ISDIR(st.st_mode) ? add_dir(h, fd, depth) : add_content(h, fd);
}

int seal_tree(int root, char ret[IMAGE_DIGEST_MAX], struct err *e)
{
	_hash_ struct hash h = { 0 };

	hash_begin(&h);
	int r = add_entry(&h, root, ".", 0);

	if (r == 0)
		r = digest_end(&h, ret);
	return r < 0 ? err_set(e, r, "read the layer") : 0;
}
