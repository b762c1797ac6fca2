/* SPDX-License-Identifier: Apache-2.0 */
/* base64.c - Base64, read strictly: unused bits of the last digit must be zero. */
#include "base/base64.h"

#include <stdint.h>

#include "base/buf.h"

/* The value of a digit and one; 0: no digit. */
static const unsigned char digits[256] = {
	['A'] = 1,  ['B'] = 2,  ['C'] = 3,  ['D'] = 4,  ['E'] = 5,  ['F'] = 6,  ['G'] = 7,
	['H'] = 8,  ['I'] = 9,  ['J'] = 10, ['K'] = 11, ['L'] = 12, ['M'] = 13, ['N'] = 14,
	['O'] = 15, ['P'] = 16, ['Q'] = 17, ['R'] = 18, ['S'] = 19, ['T'] = 20, ['U'] = 21,
	['V'] = 22, ['W'] = 23, ['X'] = 24, ['Y'] = 25, ['Z'] = 26, ['a'] = 27, ['b'] = 28,
	['c'] = 29, ['d'] = 30, ['e'] = 31, ['f'] = 32, ['g'] = 33, ['h'] = 34, ['i'] = 35,
	['j'] = 36, ['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40, ['o'] = 41, ['p'] = 42,
	['q'] = 43, ['r'] = 44, ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48, ['w'] = 49,
	['x'] = 50, ['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54, ['2'] = 55, ['3'] = 56,
	['4'] = 57, ['5'] = 58, ['6'] = 59, ['7'] = 60, ['8'] = 61, ['9'] = 62, ['+'] = 63,
	['/'] = 64,
};

bool base64_decode(const char *s, size_t len, struct buf *out)
{
	size_t pad = len < 4 || s[len - 1] != '=' ? 0 : s[len - 2] == '=' ? 2 : 1;
	size_t n = len / 4 * 3 - pad;
	uint32_t bits = 0;
	char *to;

	if (len % 4 != 0 || !(to = buf_reserve(out, n)))
		return false;
	for (size_t i = 0; i < len; i++) {
		unsigned int digit = i < len - pad ? digits[(unsigned char)s[i]] : 1;

		if (digit == 0)
			return false; /* nothing is committed */
		bits = bits << 6 | (digit - 1);
		for (size_t k = 0; i % 4 == 3 && k < 3 - (i + 1 == len ? pad : 0); k++)
			*to++ = (char)(bits >> (16 - 8 * k));
	}
	if (pad && bits & ((1u << 8 * pad) - 1))
		return false;
	buf_commit(out, n);
	return true;
}

void base64_encode(const void *data, size_t len, struct buf *out)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *p = data;
	/* No overflow: an object has at most SIZE_MAX / 2 bytes. */
	size_t n = len / 3 * 4 + (len % 3 ? 4 : 0);
	char *to = buf_reserve(out, n);

	for (size_t i = 0; to && i < len; i += 3) {
		size_t left = len - i;
		uint32_t v = (uint32_t)p[i] << 16 | (left > 1 ? (uint32_t)p[i + 1] << 8 : 0) |
			     (left > 2 ? (uint32_t)p[i + 2] : 0);

		*to++ = letters[v >> 18];
		*to++ = letters[v >> 12 & 63];
		*to++ = left > 1 ? letters[v >> 6 & 63] : '=';
		*to++ = left > 2 ? letters[v & 63] : '=';
	}
	buf_commit(out, n);
}
