/* SPDX-License-Identifier: Apache-2.0 */
/* test_tar.c - Headers and records, there and back, and what is refused. */
#include "archive/tar.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../unit.h"

TEST(there_and_back)
{
	uint8_t block[TAR_BLOCK];
	struct tar_entry en = {
		.type = '2', .path = "a/b", .link = "c", .mode = 0750, .mtime = 1700000000
	};
	char name[TAR_NAME_MAX + 20] = { 0 };
	struct tar_head got;

	tar_format(block, &en);
	assert_int_equal(tar_parse(block, &got), 1);
	assert_int_equal(got.type, '2');
	assert_string_equal(got.name, "a/b");
	assert_string_equal(got.link, "c");
	assert_int_equal(got.mode, 0750);
	assert_int_equal(got.mtime, 1700000000);
	memset(name, 'x', sizeof(name) - 1); /* cut: the rest belongs in a pax record */
	en = (struct tar_entry){ .type = '0', .size = TAR_SIZE_MAX, .path = name };
	tar_format(block, &en);
	assert_int_equal(tar_parse(block, &got), 1);
	assert_int_equal(got.size, TAR_SIZE_MAX);
	assert_int_equal(strlen(got.name), TAR_NAME_MAX);
}

/* Put the right sum over whatever is there. */
static void sum(uint8_t *block)
{
	unsigned int n = 0;
	char text[8];

	memset(block + 148, ' ', 8);
	for (size_t i = 0; i < TAR_BLOCK; i++)
		n += block[i];
	(void)snprintf(text, sizeof(text), "%06o", n);
	memcpy(block + 148, text, 7);
}

TEST(refused)
{
	uint8_t block[TAR_BLOCK] = { 0 };
	struct tar_entry en = { .type = '0', .path = "x", .size = 5 };
	struct tar_head got;

	assert_int_equal(tar_parse(block, &got), 0);
	tar_format(block, &en);
	block[0] = 'y';
	assert_int_equal(tar_parse(block, &got), -EBADMSG);
	tar_format(block, &en);
	memcpy(block + 124, "12x4", 4);
	sum(block);
	assert_int_equal(tar_parse(block, &got), -EBADMSG);
	/* Base 256: 2^40, then more than there can be. */
	memset(block + 124, 0, 12);
	block[124] = 0x80;
	block[130] = 1;
	sum(block);
	assert_int_equal(tar_parse(block, &got), 1);
	assert_int_equal(got.size, 1ull << 40);
	block[128] = 0xff;
	sum(block);
	assert_int_equal(tar_parse(block, &got), -EBADMSG);
	block[124] = 0xff; /* negative */
	sum(block);
	assert_int_equal(tar_parse(block, &got), -EBADMSG);
}

TEST(prefix)
{
	uint8_t block[TAR_BLOCK];
	struct tar_entry en = { .type = '0', .path = "name" };
	struct tar_head got;

	tar_format(block, &en);
	memset(block, 'n', 100);
	memset(block + 345, 'p', 155);
	sum(block);
	assert_int_equal(tar_parse(block, &got), 1);
	assert_int_equal(strlen(got.name), 256);
	assert_int_equal(got.name[155], '/');
	memcpy(block + 257, "ustar  ", 8); /* GNU: no prefix there */
	sum(block);
	assert_int_equal(tar_parse(block, &got), 1);
	assert_int_equal(strlen(got.name), 100);
}

TEST(records)
{
	char text[400], value[300];
	struct tar_record r;
	size_t at = 0, n = 0;

	memset(value, 'v', sizeof(value));
	/* Around where the length gets another digit. */
	for (size_t len = 0; len < 200; len++) {
		n = tar_record_put(text, sizeof(text), "path", value, len);
		assert_int_equal(n, tar_record_len("path", len));
		at = 0;
		assert_int_equal(tar_record_next(text, n, &at, &r), 1);
		assert_int_equal(at, n);
		assert_true(tar_record_is(&r, "path"));
		assert_int_equal(r.value_len, len);
		assert_int_equal(tar_record_next(text, n, &at, &r), 0);
	}
	assert_int_equal(tar_record_put(text, 10, "path", value, 100), 0);
}

TEST(bad_records)
{
	static const char *const bad[] = {
		"",         "x",       "5",        "0 a=b\n",
		"6 a=b\nx", "7 a=b\n", "6 a=b\n7", "99999999999999999999999999 a=b\n",
		"3 \n",     "5 ab\n",  "5 =b\n",   "-6 a=b\n",
		"2 ",       "1 a=b\n",
	};
	struct tar_record r;

	for (size_t i = 1; i < sizeof(bad) / sizeof(bad[0]); i++) {
		size_t at = 0;
		int got;

		while ((got = tar_record_next(bad[i], strlen(bad[i]), &at, &r)) == 1)
			;
		assert_int_equal(got, -EBADMSG);
	}
}

static int number(const char *text, int64_t *ret)
{
	struct tar_record r = { .value = text, .value_len = strlen(text) };

	return tar_record_number(&r, ret);
}

TEST(numbers)
{
	int64_t n;

	assert_int_equal(number("1700000000.5", &n), 0);
	assert_int_equal(n, 1700000000);
	assert_int_equal(number("-5", &n), 0);
	assert_int_equal(n, -5);
	assert_int_equal(number("", &n), -EBADMSG);
	assert_int_equal(number("-", &n), -EBADMSG);
	assert_int_equal(number("1e9", &n), -EBADMSG);
	assert_int_equal(number("99999999999999999999", &n), -EBADMSG);
}
