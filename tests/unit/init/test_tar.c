/* SPDX-License-Identifier: Apache-2.0 */
/* test_tar.c - Headers and records, there and back, and what is refused; the hash beside them. */
#include "init/sha256.h"
#include "init/tar.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void test_there_and_back(void **state)
{
	uint8_t block[TAR_BLOCK];
	struct tar_head h = {
		.type = '2', .name = "a/b", .link = "c", .mode = 0750, .size = 0, .mtime = 1700000000
	};
	struct tar_head got;

	(void)state;
	tar_format(block, &h);
	assert_int_equal(tar_parse(block, &got), 1);
	assert_int_equal(got.type, '2');
	assert_string_equal(got.name, "a/b");
	assert_string_equal(got.link, "c");
	assert_int_equal(got.mode, 0750);
	assert_int_equal(got.mtime, 1700000000);
	h = (struct tar_head){ .type = '0', .size = TAR_SIZE_MAX };
	memset(h.name, 'x', TAR_NAME_MAX);
	tar_format(block, &h);
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

static void test_refused(void **state)
{
	uint8_t block[TAR_BLOCK] = { 0 };
	struct tar_head h = { .type = '0', .name = "x", .size = 5 }, got;

	(void)state;
	assert_int_equal(tar_parse(block, &got), 0);
	tar_format(block, &h);
	block[0] = 'y';
	assert_int_equal(tar_parse(block, &got), -EBADMSG);
	tar_format(block, &h);
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

static void test_prefix(void **state)
{
	uint8_t block[TAR_BLOCK];
	struct tar_head h = { .type = '0', .name = "name" }, got;

	(void)state;
	tar_format(block, &h);
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

static void test_records(void **state)
{
	char text[400], value[300];
	struct tar_record r;
	size_t at = 0, n = 0;

	(void)state;
	memset(value, 'v', sizeof(value));
	/* Around where the length gets another digit. */
	for (size_t len = 0; len < 200; len++) {
		n = tar_record_put(text, sizeof(text), "path", value, len);
		at = 0;
		assert_int_equal(tar_record_next(text, n, &at, &r), 1);
		assert_int_equal(at, n);
		assert_true(tar_record_is(&r, "path"));
		assert_int_equal(r.value_len, len);
		assert_int_equal(tar_record_next(text, n, &at, &r), 0);
	}
	assert_int_equal(tar_record_put(text, 10, "path", value, 100), 0);
}

static void test_bad_records(void **state)
{
	static const char *const bad[] = {
		"",         "x",       "5",        "0 a=b\n",
		"6 a=b\nx", "7 a=b\n", "6 a=b\n7", "99999999999999999999999999 a=b\n",
		"3 \n",     "5 ab\n",  "5 =b\n",   "-6 a=b\n",
		"2 ",       "1 a=b\n",
	};
	struct tar_record r;

	(void)state;
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

static void test_numbers(void **state)
{
	int64_t n;

	(void)state;
	assert_int_equal(number("1700000000.5", &n), 0);
	assert_int_equal(n, 1700000000);
	assert_int_equal(number("-5", &n), 0);
	assert_int_equal(n, -5);
	assert_int_equal(number("", &n), -EBADMSG);
	assert_int_equal(number("-", &n), -EBADMSG);
	assert_int_equal(number("1e9", &n), -EBADMSG);
	assert_int_equal(number("99999999999999999999", &n), -EBADMSG);
}

/* From the standard, and a million times "a". */
static void test_sha256(void **state)
{
	static const uint8_t abc[32] = { 0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea,
					 0x41, 0x41, 0x40, 0xde, 0x5d, 0xae, 0x22, 0x23,
					 0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17, 0x7a, 0x9c,
					 0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad };
	static const uint8_t million[4] = { 0xcd, 0xc7, 0x6e, 0x5c };
	struct sha256 s;
	uint8_t got[32];

	(void)state;
	sha256_init(&s);
	sha256_add(&s, "a", 1);
	sha256_add(&s, "bc", 2);
	sha256_end(&s, got);
	assert_memory_equal(got, abc, 32);
	sha256_init(&s);
	for (int i = 0; i < 100000; i++)
		sha256_add(&s, "aaaaaaaaaa", 10);
	sha256_end(&s, got);
	assert_memory_equal(got, million, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_there_and_back), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_prefix),         cmocka_unit_test(test_records),
		cmocka_unit_test(test_bad_records),    cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_sha256),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
