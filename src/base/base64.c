/* SPDX-License-Identifier: Apache-2.0 */
/* base64.c - The strict reading of base64: bits that mean nothing must be zero. */
#include "base/base64.h"

#include <stdint.h>

#include "base/buf.h"

static int value_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Four characters, @pad of them '='. */
static bool decode_four(const char *s, unsigned int pad, struct buf *out)
{
	uint32_t bits = 0;
	char bytes[3];

	for (unsigned int i = 0; i < 4; i++) {
		int v = i < 4 - pad ? value_of(s[i]) : 0;

		if (v < 0)
			return false;
		bits = bits << 6 | (uint32_t)v;
	}
	if (pad && bits & ((1u << 8 * pad) - 1))
		return false;
	for (unsigned int i = 0; i < 3; i++)
		bytes[i] = (char)(bits >> (16 - 8 * i));
	return buf_append(out, bytes, 3 - pad) == 0;
}

bool base64_decode(const char *s, size_t len, struct buf *out)
{
	if (len % 4 != 0)
		return false;
	for (size_t i = 0; i < len; i += 4) {
		unsigned int pad = 0;

		if (i + 4 == len && s[i + 3] == '=')
			pad = s[i + 2] == '=' ? 2 : 1;
		if (!decode_four(s + i, pad, out))
			return false;
	}
	return true;
}
