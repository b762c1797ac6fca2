/* SPDX-License-Identifier: Apache-2.0 */
/* tar.c - The 512 bytes of a header, and the records of a pax header. */
#include "archive/tar.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Fields of a header: offset and length, as POSIX has them. */
enum {
	AT_NAME = 0,
	AT_MODE = 100,
	AT_UID = 108,
	AT_GID = 116,
	AT_SIZE = 124,
	AT_MTIME = 136,
	AT_SUM = 148,
	AT_TYPE = 156,
	AT_LINK = 157,
	AT_MAGIC = 257,
	AT_UNAME = 265,
	AT_PREFIX = 345,
	LEN_ID = 8,
	LEN_BIG = 12,
	LEN_PREFIX = 155,
};

/* Spaces, octal digits, then a space, a NUL or the end of the field; or base 256. */
static int get_number(const uint8_t *field, size_t len, uint64_t *ret)
{
	uint64_t v = 0;
	size_t i = 0;

	if (field[0] == 0x80) { /* positive, and what does not fit in 64 bits is refused */
		for (i = 1; i < len; i++) {
			if (v >> 56)
				return -EBADMSG;
			v = v << 8 | field[i];
		}
		*ret = v;
		return 0;
	}
	while (i < len && field[i] == ' ')
		i++;
	for (; i < len && field[i] >= '0' && field[i] <= '7'; i++)
		v = v << 3 | (uint64_t)(field[i] - '0'); /* 12 digits at most: no overflow */
	if (i < len && field[i] != ' ' && field[i] != '\0')
		return -EBADMSG;
	*ret = v;
	return 0;
}

static bool sum_is_right(const uint8_t *block)
{
	uint64_t want, sum = 0;

	for (size_t i = 0; i < TAR_BLOCK; i++)
		sum += i >= AT_SUM && i < AT_SUM + LEN_ID ? ' ' : block[i];
	return get_number(block + AT_SUM, LEN_ID, &want) == 0 && want == sum;
}

static bool is_zero(const uint8_t *block)
{
	for (size_t i = 0; i < TAR_BLOCK; i++)
		if (block[i])
			return false;
	return true;
}

/* Before the magic there was no prefix; GNU has other things in its place. */
static void get_name(const uint8_t *block, char ret[257])
{
	const char *name = (const char *)block + AT_NAME;
	const char *prefix = (const char *)block + AT_PREFIX;
	size_t n = 0;

	if (memcmp(block + AT_MAGIC, "ustar\0", 6) == 0 && prefix[0]) {
		n = strnlen(prefix, LEN_PREFIX);
		memcpy(ret, prefix, n);
		ret[n++] = '/';
	}
	size_t len = strnlen(name, TAR_NAME_MAX);

	memcpy(ret + n, name, len);
	ret[n + len] = '\0';
}

int tar_parse(const uint8_t block[TAR_BLOCK], struct tar_head *ret)
{
	uint64_t mode, mtime;

	if (is_zero(block))
		return 0;
	if (!sum_is_right(block) || get_number(block + AT_MODE, LEN_ID, &mode) < 0 ||
	    get_number(block + AT_SIZE, LEN_BIG, &ret->size) < 0 || ret->size > INT64_MAX)
		return -EBADMSG;
	/* A time before 1970 is negative base 256: not worth refusing an archive for. */
	if (get_number(block + AT_MTIME, LEN_BIG, &mtime) < 0 || mtime > INT64_MAX)
		mtime = 0;
	ret->mtime = (int64_t)mtime;
	ret->mode = (uint32_t)mode & 07777;
	ret->type = (char)block[AT_TYPE];
	if (ret->type == '\0' || ret->type == '7')
		ret->type = '0';
	get_name(block, ret->name);
	size_t n = strnlen((const char *)block + AT_LINK, TAR_NAME_MAX);

	memcpy(ret->link, block + AT_LINK, n);
	ret->link[n] = '\0';
	return 1;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Zero-padded octal digits and a NUL; what does not fit is capped. */
static void put_number(uint8_t *field, size_t len, uint64_t v)
{
	field[len - 1] = '\0';
	for (size_t i = len - 1; i > 0; i--, v >>= 3)
		field[i - 1] = (uint8_t)('0' + (v & 7));
}

static void put_text(uint8_t *field, const char *text)
{
	if (text)
		memcpy(field, text, strnlen(text, TAR_NAME_MAX));
}

void tar_format(uint8_t block[TAR_BLOCK], const struct tar_entry *en)
{
	uint32_t sum = 0;

	memset(block, 0, TAR_BLOCK);
	put_text(block + AT_NAME, en->path);
	put_number(block + AT_MODE, LEN_ID, en->mode & 07777);
	put_number(block + AT_UID, LEN_ID, 1000);
	put_number(block + AT_GID, LEN_ID, 1000);
	put_number(block + AT_SIZE, LEN_BIG, en->size > TAR_SIZE_MAX ? 0 : en->size);
	put_number(block + AT_MTIME, LEN_BIG,
		   en->mtime < 0 || (uint64_t)en->mtime > TAR_SIZE_MAX ? 0 : (uint64_t)en->mtime);
	memset(block + AT_SUM, ' ', LEN_ID);
	block[AT_TYPE] = (uint8_t)en->type;
	put_text(block + AT_LINK, en->link);
	memcpy(block + AT_MAGIC, "ustar\00000", 8);
	memcpy(block + AT_UNAME, "agent", 5);
	memcpy(block + AT_UNAME + 32, "agent", 5);
	for (size_t i = 0; i < TAR_BLOCK; i++)
		sum += block[i];
	put_number(block + AT_SUM, LEN_ID - 1, sum);
	block[AT_SUM + LEN_ID - 1] = ' ';
}

/* ---- pax records: "LEN KEY=VALUE\n", the length counting itself ------------------------------ */

int tar_record_next(const char *data, size_t len, size_t *at, struct tar_record *ret)
{
	const char *start = data + *at;
	size_t left = len - *at, n = 0, i = 0;

	if (left == 0)
		return 0;
	for (; i < left && start[i] >= '0' && start[i] <= '9'; i++) {
		n = n * 10 + (size_t)(start[i] - '0');
		if (n > left)
			return -EBADMSG;
	}
	if (i == 0 || i >= n || start[i] != ' ' || start[n - 1] != '\n')
		return -EBADMSG;
	const char *key = start + i + 1;
	const char *end = start + n - 1;
	const char *equals = key < end ? memchr(key, '=', (size_t)(end - key)) : NULL;

	if (!equals || equals == key)
		return -EBADMSG;
	*ret = (struct tar_record){ .key = key,
				    .key_len = (size_t)(equals - key),
				    .value = equals + 1,
				    .value_len = (size_t)(end - equals - 1) };
	*at += n;
	return 1;
}

bool tar_record_is(const struct tar_record *r, const char *key)
{
	return r->key_len == strlen(key) && memcmp(r->key, key, r->key_len) == 0;
}

int tar_record_number(const struct tar_record *r, int64_t *ret)
{
	size_t i = 0;
	bool negative = r->value_len > 0 && r->value[0] == '-';
	int64_t v = 0;

	for (i = negative; i < r->value_len && r->value[i] != '.'; i++) {
		if (r->value[i] < '0' || r->value[i] > '9' || v > (INT64_MAX - 9) / 10)
			return -EBADMSG;
		v = v * 10 + (r->value[i] - '0');
	}
	if (i == (size_t)negative)
		return -EBADMSG;
	*ret = negative ? -v : v;
	return 0;
}

static size_t count_digits(size_t n)
{
	size_t digits = 1;

	while (n /= 10)
		digits++;
	return digits;
}

size_t tar_record_len(const char *key, size_t value_len)
{
	size_t rest = 1 + strlen(key) + 1 + value_len + 1; /* all but the digits */
	size_t n = rest, before = 0;

	/* The digits count themselves: they may need one digit more than the rest alone. */
	while (n != before) {
		before = n;
		n = rest + count_digits(before);
	}
	return n;
}

size_t tar_record_put(char *out, size_t room, const char *key, const char *value, size_t value_len)
{
	size_t n = tar_record_len(key, value_len);

	if (n >= room)
		return 0;
	int len = snprintf(out, room, "%zu %s=", n, key);

	memcpy(out + len, value, value_len);
	out[n - 1] = '\n';
	return n;
}
