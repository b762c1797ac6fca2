/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seal.c - A hash of everything that a cell can see of a layer: names, kinds, owners, modes, times,
 * content.
 *
 * Names are taken in the order of their bytes, so that it does not depend on the order in which a
 * directory is read. Runs in caisson-unpack, which can read what its owner could not.
 */
#include "image/seal.h"

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
#include "image/digest.h"
#include "image/unpack.h"

#define CHUNK (256u << 10)

struct seal {
	struct digest *d;
	char *chunk;
};

static int add_content(struct seal *s, int fd)
{
	ssize_t n;
	int r = 0;

	while (r == 0 && (n = read(fd, s->chunk, CHUNK)) != 0)
		r = n < 0 ? -errno : digest_add(s->d, s->chunk, (size_t)n);
	return r;
}

static int add_head(struct seal *s, const char *name, const struct stat *st, bool opaque)
{
	const uint64_t words[] = { st->st_mode,
				   st->st_uid,
				   st->st_gid,
				   S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0,
				   (uint64_t)st->st_mtim.tv_sec,
				   (uint64_t)st->st_mtim.tv_nsec,
				   st->st_rdev,
				   opaque };
	int r = digest_add(s->d, name, strlen(name) + 1);

	return r == 0 ? digest_add(s->d, words, sizeof(words)) : r;
}

static int plain_names(const struct dirent *en)
{
	return strcmp(en->d_name, ".") != 0 && strcmp(en->d_name, "..") != 0;
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int add_entry(struct seal *s, int dir, const char *name, unsigned int depth);

static int add_dir(struct seal *s, int fd, unsigned int depth)
{
	struct dirent **names = NULL;
	int n = scandirat(fd, ".", &names, plain_names, by_bytes), r = n < 0 ? -errno : 0;

	for (int i = 0; i < n; i++) {
		if (r == 0)
			r = add_entry(s, fd, names[i]->d_name, depth + 1);
		free(names[i]);
	}
	free(names);
	/* Where the directory ends, so that what is in it and what follows it can not be mistaken.
	 */
	return r == 0 ? digest_add(s->d, "/", 2) : r;
}

static int add_link(struct seal *s, int dir, const char *name)
{
	ssize_t n = readlinkat(dir, name, s->chunk, CHUNK);

	return n < 0 ? -errno : digest_add(s->d, s->chunk, (size_t)n);
}

static int add_entry(struct seal *s, int dir, const char *name, unsigned int depth)
{
	struct stat st;
	int r;

	if (depth > UNPACK_DEPTH_MAX + 1)
		return -ELOOP;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
		r = add_head(s, name, &st, false);
		return r == 0 && S_ISLNK(st.st_mode) ? add_link(s, dir, name) : r;
	}
	_fd_ int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	r = add_head(s, name, &st, fgetxattr(fd, OPAQUE_XATTR, s->chunk, CHUNK) > 0);
	if (r < 0)
		return r;
	return S_ISDIR(st.st_mode) ? add_dir(s, fd, depth) : add_content(s, fd);
}

int seal_tree(int root, char ret[IMAGE_DIGEST_MAX], struct err *e)
{
	struct seal s = { .d = digest_new(), .chunk = malloc(CHUNK) };
	int r = s.d && s.chunk ? add_entry(&s, root, ".", 0) : -ENOMEM;

	if (r == 0)
		r = digest_end(s.d, ret);
	else
		digest_free(s.d);
	free(s.chunk);
	return r < 0 ? err_set(e, r, "read the layer") : 0;
}
