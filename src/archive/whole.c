/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whole.c - Second names, found by device and inode, and attributes as pax records.
 *
 * Attributes of overlayfs are left out: in a tree that becomes a layer they would be orders to the
 * Linux kernel.
 */
#include "archive/whole.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#include "archive/tar.h"

#define XATTR_LIST_BYTES (16u << 10)
#define XATTR_VALUE_BYTES (16u << 10)

struct file {
	dev_t dev;
	ino_t ino;
	char path[];
};

static int by_inode(const void *a, const void *b)
{
	const struct file *x = a, *y = b;

	if (x->ino != y->ino)
		return x->ino < y->ino ? -1 : 1;
	return x->dev == y->dev ? 0 : x->dev < y->dev ? -1 : 1;
}

const char *tar_first_name(void **names, const struct stat *st, const char *path)
{
	size_t size = strlen(path) + 1;
	struct file *f = malloc(sizeof(*f) + size);

	if (!f)
		return NULL;
	f->dev = st->st_dev;
	f->ino = st->st_ino;
	memcpy(f->path, path, size);
	struct file **first = tsearch(f, names, by_inode);

	if (first && *first == f)
		return path;
	free(f);
	return first ? (*first)->path : NULL;
}

size_t tar_xattrs(int fd, char *out, size_t room, bool *ret_cut)
{
	static char list[XATTR_LIST_BYTES], value[XATTR_VALUE_BYTES], key[300];
	ssize_t len = flistxattr(fd, list, sizeof(list));
	size_t n = 0;

	for (const char *name = list; len > 0 && name < list + len; name += strlen(name) + 1) {
		ssize_t size;
		size_t put;

		if (strncmp(name, "user.", 5) != 0 || strncmp(name, "user.overlay.", 13) == 0)
			continue;
		size = fgetxattr(fd, name, value, sizeof(value));
		(void)snprintf(key, sizeof(key), TAR_XATTR_KEY "%.255s", name);
		put = size < 0 ? 0 : tar_record_put(out + n, room - n, key, value, (size_t)size);
		*ret_cut = *ret_cut || put == 0;
		n += put;
	}
	return n;
}
