/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tar.h - Headers of tar archives, to and from bytes: ustar, pax records, GNU's long names.
 *
 * Pure functions over memory. Numbers are octal or base 256, checksums must be right; whatever else a
 * header says is for the caller to judge.
 */
#ifndef CAISSON_INIT_TAR_H
#define CAISSON_INIT_TAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TAR_BLOCK 512u

struct tar_head {
	char type; /* '0' file (also for NUL and '7'), '1' hard link, '2' link, '5' directory, 'x'... */
	char name[257];
	char link[101];
	uint32_t mode; /* 07777 */
	uint64_t size;
	int64_t mtime;
};

/* tar_parse() - 1, 0 for a block of zeros (the end), -EBADMSG for what is no header. */
int tar_parse(const uint8_t block[TAR_BLOCK], struct tar_head *ret);

/*
 * tar_format() - A ustar header. Names over 100 bytes are cut (the caller puts them in pax records), as is
 * a size over 8 GiB. @h->link: for '2'.
 */
void tar_format(uint8_t block[TAR_BLOCK], const struct tar_head *h);
#define TAR_NAME_MAX 100u
#define TAR_SIZE_MAX ((1ull << 33) - 1)

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

/* tar_record_put() - Append one. Return: its length, 0 when it does not fit in @room. */
size_t tar_record_put(char *out, size_t room, const char *key, const char *value, size_t value_len);

#endif
