/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tar_writer.c - One entry after the other, and no memory between them.
 *
 * A pax header announces its length before its records. The lengths of the records are known from
 * their values, so the records are never put together in memory: each goes out as it is.
 */
#include "archive/tar_writer.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#include "archive/tar.h"
#include "base/fd.h"

#define XATTR_LIST_BYTES (16u << 10)
#define XATTR_VALUE_BYTES (16u << 10)
#define XATTRS_BYTES (24u << 10) /* of one entry, as records */
#define RECORDS_MAX 4u           /* character set, path, target, size */

/* Fields that do not fit in a header. */
struct extra {
	size_t n;
	struct {
		const char *key, *value;
	} list[RECORDS_MAX];
	char number[24];
};

int tar_put_fd(void *arg, const void *data, size_t len)
{
	return fd_write_all(*(const int *)arg, data, len);
}

static bool is_ascii(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s >= 0x80)
			return false;
	return true;
}

static void add(struct extra *x, const char *key, const char *value)
{
	x->list[x->n].key = key;
	x->list[x->n++].value = value;
}

static void find_extra(const struct tar_entry *en, const char *link, struct extra *x)
{
	bool path = strlen(en->path) > TAR_NAME_MAX, target = strlen(link) > TAR_NAME_MAX;

	x->n = 0;
	if ((path && !is_ascii(en->path)) || (target && !is_ascii(link)))
		add(x, "hdrcharset", "BINARY"); /* names are bytes, which need not be UTF-8 */
	if (path)
		add(x, "path", en->path);
	if (target)
		add(x, "linkpath", link);
	if (en->size > TAR_SIZE_MAX) {
		(void)snprintf(x->number, sizeof(x->number), "%llu", (unsigned long long)en->size);
		add(x, "size", x->number);
	}
}

static int put_record(const struct tar_writer *w, const char *key, const char *value)
{
	char head[48];
	size_t len = strlen(value);
	int n = snprintf(head, sizeof(head), "%zu %s=", tar_record_len(key, len), key);
	int r = w->put(w->arg, head, (size_t)n);

	if (r == 0)
		r = w->put(w->arg, value, len);
	return r ? r : w->put(w->arg, "\n", 1);
}

static int put_block(const struct tar_writer *w, const struct tar_entry *en)
{
	uint8_t block[TAR_BLOCK];

	tar_format(block, en);
	return w->put(w->arg, block, sizeof(block));
}

static int put_records(const struct tar_writer *w, const struct tar_entry *en,
		       const struct extra *x)
{
	struct tar_entry head = { .type = 'x', .path = "pax", .mode = 0644 };
	int r;

	head.size = en->records_len;
	for (size_t i = 0; i < x->n; i++)
		head.size += tar_record_len(x->list[i].key, strlen(x->list[i].value));
	if (head.size == 0)
		return 0;
	r = put_block(w, &head);
	if (r == 0 && en->records_len > 0)
		r = w->put(w->arg, en->records, en->records_len);
	for (size_t i = 0; r == 0 && i < x->n; i++)
		r = put_record(w, x->list[i].key, x->list[i].value);
	return r ? r : tar_put_padding(w, head.size);
}

int tar_put_head(const struct tar_writer *w, const struct tar_entry *en)
{
	struct extra x;

	find_extra(en, en->link ? en->link : "", &x);
	int r = put_records(w, en, &x);

	return r ? r : put_block(w, en);
}

int tar_put_padding(const struct tar_writer *w, uint64_t size)
{
	static const uint8_t zeros[TAR_BLOCK];
	size_t n = tar_padding(size);

	return n ? w->put(w->arg, zeros, n) : 0;
}

int tar_put_end(const struct tar_writer *w)
{
	static const uint8_t zeros[2 * TAR_BLOCK];

	return w->put(w->arg, zeros, sizeof(zeros));
}

/* ---- second names of files, and attributes -------------------------------------------------- */

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

/*
 * Attributes of the user, but those of overlayfs: in a tree that becomes a layer they would be
 * orders to the Linux kernel. Return: the length of their records.
 */
static size_t put_xattrs(int fd, char *out, size_t room, bool *ret_cut)
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
		if (ret_cut && put == 0)
			*ret_cut = true;
		n += put;
	}
	return n;
}

int tar_put_stat(const struct tar_writer *w, char type, const char *path, const char *link,
		 const struct stat *st, int fd, bool *ret_cut)
{
	static char records[XATTRS_BYTES];
	const struct tar_entry en = {
		.type = type,
		.mode = st->st_mode & 0777,
		.size = type == '0' ? (uint64_t)st->st_size : 0,
		.mtime = st->st_mtim.tv_sec,
		.path = path,
		.link = link,
		.records = records,
		.records_len = fd >= 0 ? put_xattrs(fd, records, sizeof(records), ret_cut) : 0,
	};

	return tar_put_head(w, &en);
}
