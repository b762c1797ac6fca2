/* SPDX-License-Identifier: Apache-2.0 */
/* test_utf8.c - UTF-8: every code point, every short byte sequence, and truncation. */
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

#include "../unit.h"

static size_t encode(uint32_t c, char out[4])
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	for (size_t i = n - 1; i > 0; i--, c >>= 6)
		out[i] = (char)(0x80 | (c & 0x3f));
	out[0] = (char)((0xf00u >> n & 0xf0) | c);
	return n;
}

TEST(every_code_point)
{
	char s[4];

	for (uint32_t c = 0; c < 0x200000; c++) {
		bool good = c <= 0x10ffff && !(c >= 0xd800 && c <= 0xdfff);
		size_t n = encode(c, s);

		assert_int_equal(utf8_next(s, n), good ? n : 0);
		if (c % 257 == 0)
			for (size_t cut = 0; cut < n; cut++)
				assert_int_equal(utf8_next(s, cut), 0);
	}
}

/* Counted against the definition: of all 3-byte strings exactly those that encode are valid. */
TEST(every_short_sequence)
{
	size_t two = 0, three = 0;

	for (uint32_t v = 0; v < 1u << 24; v++) {
		char s[3] = { (char)(v >> 16), (char)(v >> 8), (char)v };

		if (v < 1u << 16)
			two += utf8_next(s + 1, 2) == 2;
		three += utf8_next(s, 3) == 3;
	}
	assert_int_equal(two, 0x800 - 0x80);
	assert_int_equal(three, 0x10000 - 0x800 - 0x800);
}

TEST(overlong_and_outside)
{
	static const char *const bad[] = {
		"\xc0\x80",
		"\xc1\xbf",
		"\xe0\x80\x80",
		"\xe0\x9f\xbf",
		"\xed\xa0\x80",
		"\xed\xbf\xbf",
		"\xf0\x80\x80\x80",
		"\xf0\x8f\xbf\xbf",
		"\xf4\x90\x80\x80",
		"\xf5\x80\x80\x80",
		"\xf8\x88\x80\x80",
		"\xfe",
		"\xff",
		"\x80",
		"\xbf",
		"\xc3(",
		"\xe2\x28\xa1",
		"\xe2\x82\x28",
		"\xf0\x9f\x28\x80",
		"\xf0\x9f\xa6\x28",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(utf8_next(bad[i], strlen(bad[i])), 0);
		assert_false(utf8_valid(bad[i], strlen(bad[i])));
	}
}

/* A bad byte at every offset of texts longer and shorter than a machine word; exact allocations. */
TEST(valid_finds_the_bad_byte_anywhere)
{
	for (size_t len = 0; len < 40; len++) {
		char *s = malloc(len ? len : 1);

		assert_non_null(s);
		memset(s, 'a', len);
		assert_true(utf8_valid(s, len));
		for (size_t i = 0; i < len; i++) {
			s[i] = '\x80';
			assert_false(utf8_valid(s, len));
			s[i] = '\xc3';
			assert_false(utf8_valid(s, len));
			if (i + 1 < len) {
				s[i + 1] = '\xa9';
				assert_true(utf8_valid(s, len));
				s[i + 1] = 'a';
			}
			s[i] = 'a';
		}
		free(s);
	}
	assert_true(utf8_valid("a\0b", 3));
}

TEST(truncate)
{
	/* 1 + 2 + 3 + 4 bytes, then 1 */
	static const char s[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\xa6\x80z";
	static const size_t at[] = { 0, 1, 3, 6, 10, 11, 11, 11 };

	for (size_t n = 0; n < sizeof(at) / sizeof(at[0]); n++)
		assert_int_equal(utf8_truncate(s, sizeof(s) - 1, n), at[n]);
	assert_int_equal(utf8_truncate(s, sizeof(s) - 1, SIZE_MAX), 11);
	assert_int_equal(utf8_truncate("", 0, 0), 0);
	assert_int_equal(utf8_truncate("", 0, 5), 0);
	assert_int_equal(utf8_truncate("abc", 3, 0), 0);

	/* Each bad byte is one character, also the beginnings of characters that never finish. */
	assert_int_equal(utf8_truncate("\xff\xff\xff", 3, 2), 2);
	assert_int_equal(utf8_truncate("\xf0\x9f\xa6", 3, 1), 1);
	assert_int_equal(utf8_truncate("\xf0\x9f\xa6", 3, 2), 2);
	assert_int_equal(utf8_truncate("\xe2\x82\xc3\xa9x", 5, 3), 4);
	assert_int_equal(utf8_truncate("\0\0\0", 3, 2), 2);
}

TEST(fit)
{
	static const char s[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\xa6\x80z"; /* 1, 2, 3, 4 and 1 bytes
									   */
	static const size_t fits[] = { 0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11 };

	for (size_t n = 0; n < sizeof(fits) / sizeof(fits[0]); n++)
		assert_int_equal(utf8_fit(s, sizeof(s) - 1, n), fits[n]);
	/* An invalid byte counts as a character of one byte. */
	assert_int_equal(utf8_fit("\xff\xff\xff", 3, 2), 2);
	assert_int_equal(utf8_fit("", 0, 0), 0);
}
