/* SPDX-License-Identifier: Apache-2.0 */
/* test_tail.c - The last bytes and lines of what goes on for ever. */
#include "base/buf.h"
#include "front/output/tail.h"

#include <stdlib.h>
#include <string.h>

#include "../unit.h"

static void read_is(const struct tail *t, size_t lines, const char *want)
{
	_buf_ struct buf b = BUF_INIT(TAIL_MAX + 1);

	tail_read(t, lines, &b);
	assert_string_equal(buf_str(&b), want);
}

TEST(lines)
{
	struct tail t = { 0 };

	read_is(&t, 5, "");
	tail_add(&t, "", 0);
	assert_null(t.data);
	tail_add(&t, "one\ntwo\nthree", 13);
	read_is(&t, 0, "");
	read_is(&t, 1, "three");
	read_is(&t, 2, "two\nthree");
	read_is(&t, SIZE_MAX, "one\ntwo\nthree");
	tail_add(&t, "\n", 1);
	read_is(&t, 1, "three\n");
	tail_add(&t, "\n\n", 2);
	read_is(&t, 2, "\n\n");
	assert_true(t.bytes == 16);
	tail_free(&t);
	tail_free(&t);
}

/* Against a plain copy of everything, for many sizes of pieces. */
TEST(ring)
{
	static char all[TAIL_MAX * 4];
	struct tail t = { 0 };
	size_t len = 0;

	for (size_t piece = 1; len + piece < sizeof(all); piece = piece * 3 / 2 + 1) {
		for (size_t i = 0; i < piece; i++)
			all[len + i] = (char)('a' + (len + i) % 23);
		tail_add(&t, all + len, piece);
		len += piece;
		_buf_ struct buf b = BUF_INIT(TAIL_MAX + 1);
		size_t kept = len < TAIL_MAX ? len : TAIL_MAX;

		tail_read(&t, SIZE_MAX, &b);
		assert_int_equal(b.len, kept);
		assert_memory_equal(b.data, all + len - kept, kept);
		assert_true(t.bytes == len);
	}
	assert_true(len > 2 * TAIL_MAX);
	tail_free(&t);
}
