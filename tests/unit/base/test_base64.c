/* SPDX-License-Identifier: Apache-2.0 */
/* test_base64.c - Base64 is read in its one form, and every byte comes back. */
#include "base/base64.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"

#include <string.h>

#include "../unit.h"

TEST(good)
{
	static const struct {
		const char *coded, *plain;
	} rows[] = { { "", "" },
		     { "Zg==", "f" },
		     { "Zm8=", "fo" },
		     { "Zm9v", "foo" },
		     { "Zm9vYg==", "foob" },
		     { "Zm9vYmE=", "fooba" },
		     { "Zm9vYmFy", "foobar" } };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_buf_ struct buf b = BUF_INIT(64);

		assert_true(base64_decode(rows[i].coded, strlen(rows[i].coded), &b));
		assert_string_equal(buf_str(&b), rows[i].plain);
		buf_clear(&b);
		base64_encode(rows[i].plain, strlen(rows[i].plain), &b);
		assert_string_equal(buf_str(&b), rows[i].coded);
	}
}

TEST(bad)
{
	static const char *const rows[] = { "Z",     "Zg",         "Zg=",      "=",
					    "====",  "Zh==",       "Zm9=",     "Z===",
					    "Zm9v ", "Zm9v\nZg=",  "Zg==Zg==", "Zm-v",
					    "Zm_v",  "Z\xc3\xa4v", "Zm=v",     "=m9v" };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_buf_ struct buf b = BUF_INIT(64);

		if (base64_decode(rows[i], strlen(rows[i]), &b))
			fail_msg("taken: %s", rows[i]);
		assert_int_equal(b.len, 0);
	}
	_buf_ struct buf small = BUF_INIT(2);

	assert_false(base64_decode("Zm9v", 4, &small));
	_buf_ struct buf just = BUF_INIT(2);

	assert_true(base64_decode("Zm8=", 4, &just));
}

/* The reader reads all that the writer writes. */
TEST(both_ways)
{
	uint8_t all[256];

	for (size_t i = 0; i < sizeof(all); i++)
		all[i] = (uint8_t)(i * 7);
	for (size_t n = 0; n <= sizeof(all); n++) {
		_buf_ struct buf coded = BUF_INIT(1024), plain = BUF_INIT(1024);
		struct json j;

		json_init(&j, &coded);
		json_base64(&j, all, n);
		assert_int_equal(json_finish(&j), 0);
		assert_true(base64_decode(buf_str(&coded) + 1, coded.len - 2, &plain));
		assert_int_equal(plain.len, n);
		assert_memory_equal(buf_str(&plain), all, n);
	}
}
