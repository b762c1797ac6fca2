/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whole.c - Second names in a hash table by device and inode, and attributes as pax records.
 *
 * Attributes of overlayfs are left out: in a tree that becomes a layer they would be orders to the
 * Linux kernel.
 */
#include "archive/whole.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#include "archive/tar.h"

#define XATTR_LIST_BYTES (16u << 10)
#define XATTR_VALUE_BYTES (16u << 10)

static size_t place_of(const struct tar_names *names, dev_t dev, ino_t ino)
{
	size_t i = (size_t)(((uint64_t)ino * 0x9e3779b97f4a7c15u) >> 20 ^ (uint64_t)dev) &
		   (names->size - 1);

	while (names->table[i].path && (names->table[i].ino != ino || names->table[i].dev != dev))
		i = (i + 1) & (names->size - 1);
	return i;
}

static bool grow(struct tar_names *names)
{
	struct tar_names wider = { .size = names->size ? 2 * names->size : 1024, .n = names->n };

	wider.table = calloc(wider.size, sizeof(*wider.table));
	if (!wider.table)
		return false;
	for (size_t i = 0; i < names->size; i++)
		if (names->table[i].path)
			wider.table[place_of(&wider, names->table[i].dev, names->table[i].ino)] =
				names->table[i];
	free(names->table);
	*names = wider;
	return true;
}

const char *tar_names_find(struct tar_names *names, const struct stat *st, const char *path)
{
	if (2 * names->n >= names->size && !grow(names))
		return NULL;
	struct tar_name *t = &names->table[place_of(names, st->st_dev, st->st_ino)];

	if (t->path)
		return t->path;
	*t = (struct tar_name){ .dev = st->st_dev, .ino = st->st_ino, .path = strdup(path) };
	if (!t->path)
		return NULL;
	names->n++;
	return path;
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
