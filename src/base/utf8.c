/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.c - The well-formed byte sequences of Unicode's table 3-7, and walks over them. */
#include "base/utf8.h"

#include <stdint.h>
#include <string.h>

/* Eight bytes at a time: most output is ASCII, and captures are large. */
static size_t ascii_run(const char *s, size_t len)
{
	size_t i = 0;

	while (len - i >= sizeof(uint64_t)) {
		uint64_t word;

		memcpy(&word, s + i, sizeof(word));
		if (word & UINT64_C(0x8080808080808080))
			break;
		i += sizeof(word);
	}
	while (i < len && !((unsigned char)s[i] & 0x80))
		i++;
	return i;
}

size_t utf8_next(const char *s, size_t len)
{
	const unsigned char *p = (const unsigned char *)s;
	/* The range of the second byte; this is what excludes overlong forms and surrogates. */
	unsigned char low = 0x80, high = 0xbf;
	size_t n;

	if (len == 0)
		return 0;
	if (p[0] < 0x80)
		return 1;
	if (p[0] >= 0xc2 && p[0] <= 0xdf) {
		n = 2;
	} else if (p[0] >= 0xe0 && p[0] <= 0xef) {
		n = 3;
		if (p[0] == 0xe0)
			low = 0xa0;
		else if (p[0] == 0xed)
			high = 0x9f;
	} else if (p[0] >= 0xf0 && p[0] <= 0xf4) {
		n = 4;
		if (p[0] == 0xf0)
			low = 0x90;
		else if (p[0] == 0xf4)
			high = 0x8f;
	} else {
		return 0;
	}
	if (len < n || p[1] < low || p[1] > high)
		return 0;
	for (size_t i = 2; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

bool utf8_valid(const char *s, size_t len)
{
	size_t i = 0;

	while (i < len) {
		i += ascii_run(s + i, len - i);
		if (i == len)
			break;

		size_t n = utf8_next(s + i, len - i);

		if (n == 0)
			return false;
		i += n;
	}
	return true;
}

size_t utf8_truncate(const char *s, size_t len, size_t max_chars)
{
	size_t i = 0;

	if (len <= max_chars)
		return len;
	while (i < len && max_chars > 0) {
		size_t n = utf8_next(s + i, len - i);

		i += n ? n : 1;
		max_chars--;
	}
	return i;
}

size_t utf8_fit(const char *s, size_t len, size_t max_bytes)
{
	size_t i = 0;

	if (len <= max_bytes)
		return len;
	for (;;) {
		size_t n = utf8_next(s + i, len - i);

		if (i + (n ? n : 1) > max_bytes)
			return i;
		i += n ? n : 1;
	}
}
