/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_utf8.c - UTF-8 over arbitrary bytes, against a decoder that works the other way round.
 *
 * The reference decodes numbers first and checks them afterwards, where the code under test checks
 * ranges of bytes; the two share no table. The first byte chooses the number of characters kept.
 */
#include "base/utf8.h"
#include "fuzz.h"

static size_t reference(const uint8_t *p, size_t len)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };

	if (len == 0)
		return 0;
	if (p[0] < 0x80)
		return 1;

	size_t n = (p[0] & 0xe0) == 0xc0 ? 2 :
		   (p[0] & 0xf0) == 0xe0 ? 3 :
		   (p[0] & 0xf8) == 0xf0 ? 4 :
					   0;

	if (n == 0 || len < n)
		return 0;

	uint32_t c = p[0] & (0xffu >> (n + 1));

	for (size_t i = 1; i < n; i++) {
		if (p[i] >> 6 != 2)
			return 0;
		c = c << 6 | (p[i] & 0x3f);
	}
	return c >= least[n] && c <= 0x10ffff && c >> 11 != 0x1b ? n : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;

	size_t max_chars = data[0], len = size - 1, chars = 0, cut = 0;
	const char *s = (const char *)data + 1;
	bool valid = true;

	for (size_t i = 0; i < len; chars++) {
		size_t n = reference(data + 1 + i, len - i);

		require(utf8_next(s + i, len - i) == n);
		if (chars == max_chars)
			cut = i;
		valid = valid && n > 0;
		i += n ? n : 1;
	}
	require(utf8_valid(s, len) == valid);
	require(utf8_truncate(s, len, max_chars) == (chars > max_chars ? cut : len));
	require(utf8_truncate(s, len, chars) == len);
	require(utf8_truncate(s, len, SIZE_MAX) == len);
	return 0;
}
