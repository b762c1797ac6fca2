/* SPDX-License-Identifier: Apache-2.0 */
/* test_buf.c - The bounded buffer: the maximum holds, errors stick, the NUL is always there. */
#include "base/buf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../unit.h"

/* Requests that no machine can satisfy are part of the test, so the sanitizer must allow them. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

static void check_invariant(const struct buf *b)
{
	assert_true(b->len <= b->max);
	if (!b->data) {
		assert_int_equal(b->len, 0);
		assert_int_equal(b->cap, 0);
		return;
	}
	assert_true(b->len < b->cap && b->cap - 1 <= b->max);
	assert_int_equal(b->data[b->len], '\0');
}

TEST(empty)
{
	_buf_ struct buf b = BUF_INIT(10);

	assert_string_equal(buf_str(&b), "");
	assert_int_equal(buf_append(&b, NULL, 0), 0);
	assert_int_equal(buf_puts(&b, ""), 0);
	assert_int_equal(buf_printf(&b, "%s", ""), 0);
	assert_int_equal(buf_append_some(&b, NULL, 0), 0);
	buf_commit(&b, 0);
	buf_consume(&b, 0);
	buf_consume(&b, 100);
	buf_clear(&b);
	check_invariant(&b);
	assert_int_equal(b.err, 0);
	buf_free(&b);
	buf_free(&b);
	assert_int_equal(b.max, 10);
}

TEST(maximum_is_exact)
{
	for (size_t max = 0; max < 200; max++) {
		_buf_ struct buf b = BUF_INIT(max);

		for (size_t i = 0; i < max; i++) {
			assert_int_equal(buf_append(&b, "x", 1), 0);
			check_invariant(&b);
		}
		assert_int_equal(buf_append(&b, "x", 1), -EMSGSIZE);
		assert_int_equal(b.len, max);
		check_invariant(&b);
	}
}

TEST(error_sticks_until_cleared)
{
	_buf_ struct buf b = BUF_INIT(4);

	assert_int_equal(buf_puts(&b, "abc"), 0);
	assert_int_equal(buf_puts(&b, "de"), -EMSGSIZE); /* all or nothing */
	assert_string_equal(buf_str(&b), "abc");
	assert_int_equal(buf_puts(&b, "d"), -EMSGSIZE); /* would fit, but a gap would be a lie */
	assert_int_equal(buf_append(&b, NULL, 0), -EMSGSIZE);
	assert_int_equal(buf_printf(&b, "d"), -EMSGSIZE);
	assert_int_equal(buf_append_some(&b, "d", 1), 0);
	assert_null(buf_reserve(&b, 1));
	buf_commit(&b, 1);
	assert_string_equal(buf_str(&b), "abc");
	buf_consume(&b, 1);
	assert_string_equal(buf_str(&b), "bc");
	assert_int_equal(b.err, -EMSGSIZE);
	buf_clear(&b);
	assert_int_equal(buf_puts(&b, "wxyz"), 0);
	assert_string_equal(buf_str(&b), "wxyz");
	check_invariant(&b);
}

TEST(overflow_and_no_memory)
{
	_buf_ struct buf b = BUF_INIT(SIZE_MAX);

	assert_int_equal(buf_puts(&b, "abc"), 0);
	assert_null(buf_reserve(&b, SIZE_MAX));
	assert_int_equal(b.err, -EMSGSIZE);
	b.err = 0;
	assert_null(buf_reserve(&b, SIZE_MAX - 3)); /* fits the maximum, but not with the NUL */
	assert_int_equal(b.err, -EMSGSIZE);
	b.err = 0;
	assert_null(buf_reserve(&b, SIZE_MAX / 2));
	assert_int_equal(b.err, -ENOMEM);
	assert_string_equal(buf_str(&b), "abc");
	check_invariant(&b);
}

TEST(printf)
{
	for (size_t max = 0; max < 300; max += 7) {
		_buf_ struct buf b = BUF_INIT(max);
		size_t want = 0;

		for (int i = 1; i < 40; i++) {
			int r = buf_printf(&b, "%*d", i, i);

			check_invariant(&b);
			if (want + (size_t)i > max) {
				assert_int_equal(r, -EMSGSIZE);
				break;
			}
			assert_int_equal(r, 0);
			want += (size_t)i;
			assert_int_equal(b.len, want);
		}
		/* A text that did not fit leaves nothing, also not beyond the end. */
		assert_int_equal(b.len, want);
		assert_int_equal(strlen(buf_str(&b)), want);
	}

	_buf_ struct buf b = BUF_INIT(1000);

	assert_int_equal(buf_printf(&b, "%s-%d", "a", 1), 0);
	assert_int_equal(buf_printf(&b, "%c%c", 'b', '\0'), 0);
	assert_int_equal(b.len, 5);
	assert_memory_equal(b.data, "a-1b\0", 6);
	assert_int_equal(buf_printf(&b, "%0500d%0400d", 1, 2), 0);
	assert_int_equal(b.len, 905);
}

TEST(append_some)
{
	_buf_ struct buf b = BUF_INIT(5);

	assert_int_equal(buf_append_some(&b, "abc", 3), 3);
	assert_int_equal(buf_append_some(&b, "defg", 4), 2);
	assert_int_equal(buf_append_some(&b, "h", 1), 0);
	assert_int_equal(b.err, 0);
	assert_string_equal(buf_str(&b), "abcde");
	buf_consume(&b, 4);
	assert_int_equal(buf_append_some(&b, "defgh", 5), 4);
	assert_string_equal(buf_str(&b), "edefg");
	check_invariant(&b);
}

TEST(reserve_and_commit)
{
	_buf_ struct buf b = BUF_INIT(100);
	char *p = buf_reserve(&b, 100);

	assert_non_null(p);
	memset(p, 'r', 100);
	buf_commit(&b, 60);
	check_invariant(&b);
	assert_int_equal(b.len, 60);
	p = buf_reserve(&b, 40);
	assert_ptr_equal(p, b.data + 60);
	memset(p, 's', 40);
	buf_commit(&b, 40);
	assert_int_equal(b.len, 100);
	assert_non_null(buf_reserve(&b, 0));
	assert_int_equal(b.err, 0);
	buf_commit(&b, 1); /* more than was reserved */
	assert_int_equal(b.err, -EINVAL);
	assert_int_equal(b.len, 100);
	check_invariant(&b);

	_buf_ struct buf none = BUF_INIT(100);

	buf_commit(&none, 1);
	assert_int_equal(none.err, -EINVAL);
}

TEST(trim)
{
	_buf_ struct buf b = BUF_INIT(1 << 20);

	buf_trim(&b);
	check_invariant(&b);
	assert_non_null(buf_reserve(&b, 1 << 19));
	assert_int_equal(buf_puts(&b, "abc"), 0);
	buf_trim(&b);
	check_invariant(&b);
	assert_int_equal(b.cap, 4);
	assert_int_equal(buf_puts(&b, "def"), 0);
	assert_string_equal(buf_str(&b), "abcdef");
	buf_consume(&b, 6);
	buf_trim(&b);
	check_invariant(&b);
	assert_null(b.data);
}

/* Random operations against a model. The seed is fixed, so a failure repeats. */
TEST(against_a_model)
{
	static const size_t max = 500;
	_buf_ struct buf b = BUF_INIT(max);
	unsigned char model[500];
	unsigned int seed = 1;
	size_t len = 0;

	for (int round = 0; round < 20000; round++) {
		char piece[64];
		size_t n = (size_t)rand_r(&seed) % sizeof(piece);

		memset(piece, rand_r(&seed) & 0xff, n);
		if (rand_r(&seed) % 2) {
			size_t fits = n < max - len ? n : max - len;

			assert_int_equal(buf_append_some(&b, piece, n), fits);
			memcpy(model + len, piece, fits);
			len += fits;
		} else {
			buf_consume(&b, n);
			n = n < len ? n : len;
			memmove(model, model + n, len - n);
			len -= n;
		}
		check_invariant(&b);
		assert_int_equal(b.len, len);
		if (len)
			assert_memory_equal(b.data, model, len);
	}
	assert_int_equal(b.err, 0);
}
