/* SPDX-License-Identifier: Apache-2.0 */
/* test_hash.c - SHA-256 with the values of FIPS 180-4. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "hash/hash.h"

#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

static void test_known(void **state)
{
	char hex[HASH_HEX + 1];

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_true(hash_sha256_hex("", 0, hex));
		assert_string_equal(hex, EMPTY);
		assert_true(hash_sha256_hex("abc", 3, hex));
		assert_string_equal(hex, ABC);
	}
}

static void test_bytes(void **state)
{
	unsigned char sum[HASH_BYTES + 1] = { 0 };

	(void)state;
	sum[HASH_BYTES] = 0x5a;
	assert_true(hash_sha256("abc", 3, sum));
	assert_int_equal(sum[0], 0xba);
	assert_int_equal(sum[HASH_BYTES - 1], 0xad);
	assert_int_equal(sum[HASH_BYTES], 0x5a);
}

static void test_pieces(void **state)
{
	struct hash h = { 0 };
	char hex[HASH_HEX + 1];

	(void)state;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
