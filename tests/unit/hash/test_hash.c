/* SPDX-License-Identifier: Apache-2.0 */
/* test_hash.c - SHA-256 with the values of FIPS 180-4. */
#include <string.h>

#include "../unit.h"
#include "hash/hash.h"

#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

TEST(known)
{
	char hex[HASH_HEX + 1];

	for (int i = 0; i < 3; i++) {
		assert_true(hash_sha256_hex("", 0, hex));
		assert_string_equal(hex, EMPTY);
		assert_true(hash_sha256_hex("abc", 3, hex));
		assert_string_equal(hex, ABC);
	}
}

TEST(bytes)
{
	unsigned char sum[HASH_BYTES + 1] = { 0 };

	sum[HASH_BYTES] = 0x5a;
	assert_true(hash_sha256("abc", 3, sum));
	assert_int_equal(sum[0], 0xba);
	assert_int_equal(sum[HASH_BYTES - 1], 0xad);
	assert_int_equal(sum[HASH_BYTES], 0x5a);
}

TEST(pieces)
{
	struct hash h = { 0 };
	char hex[HASH_HEX + 1];

	for (int i = 0; i < 2; i++) {
		hash_begin(&h);
		hash_add(&h, "a", 1);
		hash_add(&h, NULL, 0);
		hash_add(&h, "bc", 2);
		assert_true(hash_end(&h, hex));
		assert_string_equal(hex, ABC);
	}
	hash_begin(&h);
	h.failed = true; /* as one that ran out of memory on its way */
	hash_add(&h, "abc", 3);
	assert_false(hash_end(&h, hex));
	hash_close(&h);
}
