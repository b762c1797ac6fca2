/* SPDX-License-Identifier: Apache-2.0 */
/* test_hash.c - SHA-256 with the values of FIPS 180-4. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "front/support/hash.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
