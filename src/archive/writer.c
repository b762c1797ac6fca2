/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer.c - One entry after the other, and no memory between them.
 *
 * A pax header announces its length before its records. The lengths of the records are known from
 * their values, so the records are never put together in memory: each goes out as it is.
 */
#include "archive/writer.h"

#include <stdio.h>
#include <string.h>

#include "base/fd.h"

#define RECORDS_MAX 4u /* character set, path, target, size */

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
