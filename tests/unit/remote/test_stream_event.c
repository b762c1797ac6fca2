/* SPDX-License-Identifier: Apache-2.0 */
/* test_stream_event.c - Lines out of pieces, events out of lines, bytes out of events. */
#include <errno.h>
#include <string.h>

#include "../unit.h"
#include "base/buf.h"
#include "client/lines.h"
#include "remote/stream_event.h"

static int collect(void *arg, char *line, size_t len)
{
	struct buf *b = arg;

	assert_int_equal(strlen(line), len);
	(void)buf_printf(b, "<%s>", line);
	return strcmp(line, "stop") == 0 ? 7 : 0;
}

TEST(pieces)
{
	static const char text[] = "one\n\r\n\ntwo\r\nthree";

	for (size_t step = 1; step <= sizeof(text) - 1; step++) {
		_buf_ struct buf got = BUF_INIT(1024);
		struct lines l;

		lines_init(&l, collect, &got);
		for (size_t at = 0; at < sizeof(text) - 1; at += step) {
			size_t n = sizeof(text) - 1 - at < step ? sizeof(text) - 1 - at : step;

			assert_int_equal(lines_feed(&l, text + at, n), 0);
		}
		assert_string_equal(buf_str(&got), "<one><two>");
		assert_int_equal(lines_end(&l), 0);
		assert_string_equal(buf_str(&got), "<one><two><three>");
		lines_free(&l);
	}
}

TEST(stop)
{
	_buf_ struct buf got = BUF_INIT(1024);
	struct lines l;

	lines_init(&l, collect, &got);
	assert_int_equal(lines_feed(&l, "a\nstop\nb\n", 9), 7);
	assert_string_equal(buf_str(&got), "<a><stop>");
	lines_free(&l);
}

TEST(too_long)
{
	_buf_ struct buf got = BUF_INIT(1024);
	struct lines l;

	lines_init(&l, collect, &got);
	l.partial.max = 10;
	assert_int_equal(lines_feed(&l, "0123456789", 10), 0);
	assert_int_equal(lines_feed(&l, "0", 1), -EMSGSIZE);
	lines_free(&l);
}

static int text_of(const char *line, struct buf *out)
{
	struct event ev;

	assert_int_equal(event_parse(line, strlen(line), &ev), 0);
	int r = event_text(&ev, out);

	event_free(&ev);
	return r;
}

TEST(bytes)
{
	_buf_ struct buf b = BUF_INIT(1024);

	assert_int_equal(
		text_of("{\"id\":1,\"type\":\"stdout\",\"data\":\"a\\u0000\xc3\xa9\"}", &b), 0);
	assert_int_equal(b.len, 4);
	assert_memory_equal(buf_str(&b), "a\0\xc3\xa9", 4);
	buf_clear(&b);
	assert_int_equal(
		text_of("{\"type\":\"stdout\",\"data\":\"?\",\"data_base64\":\"/wBh\"}", &b), 0);
	assert_memory_equal(buf_str(&b), "\xff\0a", 3);
	assert_int_equal(text_of("{\"type\":\"stdout\"}", &b), -EBADMSG);
	assert_int_equal(text_of("{\"type\":\"stdout\",\"data_base64\":\"!!!!\"}", &b), -EBADMSG);
}

TEST(events)
{
	static const char *const bad[] = { "",
					   "[]",
					   "{}",
					   "{\"type\":1}",
					   "{\"type\":\"a\"",
					   "null",
					   "{\"type\":\"\xff\"}",
					   "{\"type\":\"a\",\"type\":\"b\"}" };
	static const char line[] = "{\"id\":42,\"type\":\"done\",\"exit_code\":3}";
	struct event ev;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(event_parse(bad[i], strlen(bad[i]), &ev), -EBADMSG);
	assert_int_equal(event_parse(line, sizeof(line) - 1, &ev), 0);
	assert_int_equal(ev.id, 42);
	assert_true(event_is(&ev, "done"));
	assert_false(event_is(&ev, "don"));
	event_free(&ev);
}

static void check_quick(const char *line, int taken, uint64_t id, const char *text)
{
	_buf_ struct buf b = BUF_INIT(1024);
	uint64_t got;
	bool is_stderr;

	assert_int_equal(event_quick(line, strlen(line), &got, &is_stderr, &b), taken);
	if (!taken)
		return;
	assert_int_equal(got, id);
	assert_string_equal(buf_str(&b), text);
}

TEST(quick)
{
	check_quick("{\"id\":7,\"type\":\"stdout\",\"data\":\"a\\n\\\"\\\\\\u001b\\u0085b\"}", 1, 7,
		    "a\n\"\\\x1b\xc2\x85"
		    "b");
	check_quick("{\"id\":8,\"type\":\"stderr\",\"data\":\"\"}", 1, 8, "");
	check_quick("{\"id\":9,\"type\":\"stdout\",\"data\":\"?\",\"data_base64\":\"YWJj\"}", 1, 9,
		    "abc");
	/* A program may write what looks like the end of one. */
	check_quick("{\"id\":1,\"type\":\"stdout\",\"data\":\",\\\"data_base64\\\":\\\"YWJj\"}", 1,
		    1, ",\"data_base64\":\"YWJj");
	check_quick("{\"id\":1,\"type\":\"stdout\",\"data\":\"\\u20ac\"}", 0, 0, NULL);
	check_quick("{\"id\":1,\"type\":\"stdout\",\"data\":\"a\",\"more\":\"b\"}", 0, 0, NULL);
	check_quick("{\"id\":1,\"type\":\"done\",\"data\":\"a\"}", 0, 0, NULL);
	check_quick("{\"id\":1,\"type\":\"stdout\",\"data\":\"a\\\"}", 0, 0, NULL);
	check_quick("{\"id\":1", 0, 0, NULL);
}
