/* SPDX-License-Identifier: Apache-2.0 */
/* test_lines.c - Lines of a bounded length out of pieces of any. */
#include "client/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../unit.h"

static int on_line(void *arg, char *line, size_t len)
{
	(void)buf_append(arg, line, len);
	return buf_puts(arg, "|");
}

static int on_long(void *arg, const struct lines *l)
{
	(void)l;
	return buf_puts(arg, "LONG|");
}

static void feed(size_t step, const char *text, const char *want)
{
	_buf_ struct buf seen = BUF_INIT(256);
	struct lines l;

	lines_init(&l, on_line, &seen);
	lines_limit(&l, 5, on_long);
	for (size_t at = 0, len = strlen(text); at < len; at += step)
		assert_int_equal(lines_feed(&l, text + at, len - at < step ? len - at : step), 0);
	assert_int_equal(lines_end(&l), 0);
	lines_free(&l);
	if (strcmp(buf_str(&seen), want) != 0)
		fail_msg("pieces of %zu: %s", step, buf_str(&seen));
}

TEST(limit)
{
	for (size_t step = 1; step < 40; step++)
		feed(step, "12345\n123456\n1\n\n123456789012345\r\nab\r\n1234567",
		     "12345|LONG|1|LONG|ab|LONG|");
}

TEST(no_limit)
{
	_buf_ struct buf seen = BUF_INIT(256);
	struct lines l;

	lines_init(&l, on_line, &seen);
	l.partial.max = 5;
	assert_int_equal(lines_feed(&l, "123\n123456\n1\n", 13), -EMSGSIZE);
	assert_string_equal(buf_str(&seen), "123|");
	lines_free(&l);
}

static int on_long_id(void *arg, const struct lines *l)
{
	return buf_printf(arg, "<%llu>", (unsigned long long)lines_id(l));
}

static void feed_ids(const char *text, size_t piece, const char *expected)
{
	_buf_ struct buf out = BUF_INIT(4096);
	struct lines l;

	lines_init(&l, on_line, &out);
	lines_limit(&l, 40, on_long_id);
	for (size_t at = 0, len = strlen(text); at < len; at += piece)
		assert_int_equal(lines_feed(&l, text + at, len - at < piece ? len - at : piece), 0);
	assert_string_equal(buf_str(&out), expected);
	lines_free(&l);
}

/* The request that a line answers, of a line that is too long. */
TEST(ids)
{
	for (size_t piece = 1; piece < 120; piece++) {
		feed_ids("{\"id\":12,\"result\":\"long long long long long long\"}\nx\n", piece,
			 "<12>x|");
		feed_ids("{\"result\":\"long long long long long long\",\"id\": 7}\nx\n", piece,
			 "<7>x|");
		feed_ids("nothing that looks like a message of anybody\nx\n", piece, "<0>x|");
	}
}
