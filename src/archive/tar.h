/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tar.h - The format of tar archives: headers and pax records, to and from bytes.
 *
 * Pure functions over memory. Numbers are octal or base 256, and a checksum must be right.
 * Everything else in a header is for the reader (tar_reader.h) to judge.
 */
#ifndef CAISSON_ARCHIVE_TAR_H
#define CAISSON_ARCHIVE_TAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TAR_BLOCK 512u
#define TAR_NAME_MAX 100u               /* of a path or a target in a header */
#define TAR_SIZE_MAX ((1ull << 33) - 1) /* of content, in octal digits */
#define TAR_XATTR_KEY "SCHILY.xattr."   /* begins the key of an attribute, as GNU tar has it */

/* One entry of an archive, as a reader hands it out and as a writer takes it. */
struct tar_entry {
	char type;     /* '0' file, '1' hard link, '2' symbolic link, '5' directory, '6' pipe */
	uint32_t mode; /* 0777 */
	int64_t mtime;
	uint64_t size; /* of the content; only files have any */
	const char *path;
	const char *link;    /* target of '1' and '2'; not for others; NULL is "" */
	const char *records; /* pax records; those with TAR_XATTR_KEY are attributes */
	size_t records_len;
};

/* The content of the 512 bytes of a header. */
struct tar_head {
	char type; /* as above; NUL and '7' are '0'; 'x', 'g', 'L', 'K': an extended header */
	char name[257];
	char link[101];
	uint32_t mode; /* 07777 */
	uint64_t size;
	int64_t mtime;
};

/* tar_parse() - 1, 0 for a block of zeros (the end), -EBADMSG for anything else than a header. */
int tar_parse(const uint8_t block[TAR_BLOCK], struct tar_head *ret);

/* tar_padding() - How many bytes fill the last block of content of this size. */
static inline size_t tar_padding(uint64_t size)
{
	return (size_t)((TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK);
}

/* tar_format() - A ustar header. Cuts what does not fit: a path, a target, a size, a time. */
void tar_format(uint8_t block[TAR_BLOCK], const struct tar_entry *en);

/* A record of a pax header: slices of its data. */
struct tar_record {
	const char *key, *value;
	size_t key_len, value_len;
};

/* tar_record_next() - 1, 0 at the end, -EBADMSG. @at: begin with 0. */
int tar_record_next(const char *data, size_t len, size_t *at, struct tar_record *ret);

bool tar_record_is(const struct tar_record *r, const char *key);

/* tar_record_number() - A decimal number, a fraction is dropped. 0 or -EBADMSG. */
int tar_record_number(const struct tar_record *r, int64_t *ret);

/* tar_record_len() - The whole length of a record. */
size_t tar_record_len(const char *key, size_t value_len);
/* tar_record_put() - Append one. Return: its length, 0 when it does not fit in @room. */
size_t tar_record_put(char *out, size_t room, const char *key, const char *value, size_t value_len);

#endif
