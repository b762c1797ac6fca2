/* SPDX-License-Identifier: Apache-2.0 */
/* test_sha256.c - The hash against the examples of its standard. */
#include "base/sha256.h"

#include "../unit.h"

/* From the standard, and a million times "a". */
TEST(sha256)
{
	static const uint8_t abc[32] = { 0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea,
					 0x41, 0x41, 0x40, 0xde, 0x5d, 0xae, 0x22, 0x23,
					 0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17, 0x7a, 0x9c,
					 0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad };
	static const uint8_t million[4] = { 0xcd, 0xc7, 0x6e, 0x5c };
	struct sha256 s;
	uint8_t got[32];

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
