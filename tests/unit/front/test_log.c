/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_log.c - One line per record, whatever it contains; and a stderr that is full, closed or slow
 * blocks nothing.
 */
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/utf8.h"
#include "front/support/log.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../unit.h"

#define TIME_NS (UINT64_C(1794799516) * CLOCK_NS_PER_S + 123456789) /* 2026-11-16T03:25:16 */

static struct buf line = BUF_INIT(LOG_LINE_MAX + 1);

static const char *format(bool json, const struct log_field *fields, size_t n)
{
	log_format(&line, json, TIME_NS, LOG_LEVEL_INFO, "request", fields, n);
	assert_int_equal(line.err, 0);
	assert_in_range(line.len, 2, LOG_LINE_MAX);
	/* One line, and printable. */
	assert_int_equal(line.data[line.len - 1], '\n');
	for (size_t i = 0; i + 1 < line.len; i++)
		assert_true((unsigned char)line.data[i] >= ' ' && line.data[i] != 0x7f);
	assert_true(utf8_valid(line.data, line.len));
	return buf_str(&line);
}
#define FORMAT(json, ...)                                                                          \
	format(json, (struct log_field[]){ __VA_ARGS__ },                                          \
	       sizeof((struct log_field[]){ __VA_ARGS__ }) / sizeof(struct log_field))

static int saved = -1;

/* Put @fd in the place of stderr. */
static void redirect(int fd)
{
	if (saved < 0)
		saved = dup(STDERR_FILENO);
	assert_return_code(dup2(fd, STDERR_FILENO), errno);
}

static int restore(void **state)
{
	(void)state;
	if (saved >= 0) {
		(void)dup2(saved, STDERR_FILENO);
		saved = fd_close(saved);
	}
	log_setup(LOG_LEVEL_INFO, true);
	return 0;
}

TEST(json)
{
	assert_string_equal(
		FORMAT(true, F_STR("method", "POST"), F_UINT("status", 200), F_INT("delta", -1),
		       F_MS("ms", 1234567), F_BOOL("tls", false), F_STR("none", NULL)),
		"{\"time\":\"2026-11-16T03:25:16.123Z\",\"level\":\"info\",\"event\":\"request\","
		"\"method\":\"POST\",\"status\":200,\"delta\":-1,\"ms\":1.234,\"tls\":false,\"none\":null}\n");
}

TEST(text, NULL, restore)
{
	assert_int_equal(setenv("TZ", "UTC", 1), 0);
	log_setup(LOG_LEVEL_INFO, false);
	assert_string_equal(
		FORMAT(false, F_STR("method", "POST"), F_STR("path", "/execute"),
		       F_UINT("status", 200), F_MS("ms", 1200000)),
		"03:25:16.123 info request method=POST path=\"/execute\" status=200 ms=1.200\n");
	assert_non_null(
		strstr(FORMAT(false, F_STR("a", ""), F_STR("b", "x=1 y"), F_STRN("c", "abc", 2)),
		       " a=\"\" b=\"x=1 y\" c=ab\n"));
}

/* A line cannot be forged from inside a value. */
TEST(escapes)
{
	static const char evil[] = "a\nb\r{\"level\":\"x\"}\x1b[31m\0\xff\xc2\x9b\x7f";
	json_error_t e;

	json_t *j = json_loads(FORMAT(true, F_STRN("code", evil, sizeof(evil) - 1)), JSON_ALLOW_NUL,
			       &e);

	assert_non_null(j);
	assert_memory_equal(json_string_value(json_object_get(j, "code")), "a\nb\r{\"level\"", 12);
	json_decref(j);
	(void)FORMAT(false, F_STRN("code", evil, sizeof(evil) - 1));
	assert_null(strstr(buf_str(&line), "\x1b"));
}

TEST(cut_value)
{
	char text[1000];

	memset(text, 'x', sizeof(text));
	text[LOG_VALUE_MAX] = '\0';
	assert_null(strstr(FORMAT(true, F_STR("v", text)), "\xe2\x80\xa6"));
	text[LOG_VALUE_MAX] = 'x';
	text[LOG_VALUE_MAX + 1] = '\0';
	assert_non_null(strstr(FORMAT(true, F_STR("v", text)), "xxx\xe2\x80\xa6\""));
	/* Not in the middle of a character. */
	for (size_t i = 0; i + 3 < sizeof(text); i += 3)
		memcpy(text + i, "\xe2\x82\xac", 3);
	assert_null(strstr(FORMAT(true, F_STRN("v", text, 900)), "\xef\xbf\xbd"));
	assert_non_null(strstr(buf_str(&line), "\xe2\x82\xac\xe2\x80\xa6\""));
	/* Bytes that are no characters are cut as well. */
	memset(text, 0xff, sizeof(text));
	(void)FORMAT(true, F_STRN("v", text, sizeof(text)));
	assert_in_range(line.len, 3 * LOG_VALUE_MAX, 3 * LOG_VALUE_MAX + 200);
}

TEST(cut_line)
{
	char text[LOG_VALUE_MAX];
	struct log_field fields[64];

	memset(text, 1, sizeof(text)); /* six bytes each when escaped */
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		fields[i] = i % 2 ? F_UINT("n", i) : F_STRN("v", text, sizeof(text));
	for (int json = 0; json < 2; json++) {
		assert_non_null(strstr(format(json, fields, ARRAY_SIZE(fields)),
				       json ? "\"cut\":true}" : "cut=true"));
		/* Small ones still find room. */
		assert_non_null(strstr(buf_str(&line), json ? "\"n\":63" : "n=63"));
	}
}

/* ---- the way out --------------------------------------------------------------------------- */

static void say(unsigned int n)
{
	log_event(LOG_LEVEL_INFO, "tick", F_UINT("n", n),
		  F_STR("pad", "0123456789012345678901234567890123456789"));
}

TEST(levels, NULL, restore)
{
	int p[2];
	char out[4096];

	assert_return_code(pipe2(p, O_CLOEXEC), errno);
	redirect(p[1]);
	log_setup(LOG_LEVEL_WARNING, true);
	assert_false(log_enabled(LOG_LEVEL_INFO));
	assert_true(log_enabled(LOG_LEVEL_ERROR));
	log_event(LOG_LEVEL_INFO, "quiet", F_BOOL("b", true));
	log_event(LOG_LEVEL_ERROR, "loud", F_BOOL("b", true));
	log_write(LOG_LEVEL_WARNING, "bare", NULL, 0);

	ssize_t n = read(p[0], out, sizeof(out) - 1);

	assert_true(n > 0);
	out[n] = '\0';
	assert_null(strstr(out, "quiet"));
	assert_non_null(strstr(out, "\"level\":\"error\",\"event\":\"loud\",\"b\":true}\n"));
	assert_non_null(strstr(out, "\"level\":\"warning\",\"event\":\"bare\"}\n"));
	/* Our way to it is our own: the pipe itself still blocks for its other users. */
	assert_int_equal(fcntl(STDERR_FILENO, F_GETFL) & O_NONBLOCK, 0);
	(void)fd_close(p[0]);
	(void)fd_close(p[1]);
}

/* Fill it, and go on: the lines that do not fit are counted. */
static void fill(int end)
{
	uint64_t lost = log_lost();
	char out[4096];
	unsigned int n = 0;

	log_setup(LOG_LEVEL_INFO, true);
	for (; n < 100000 && log_lost() == lost; n++)
		say(n);
	assert_int_equal(log_lost(), lost + 1);
	say(n);
	assert_int_equal(log_lost(), lost + 2);
	/* The output is whole lines, but perhaps the last; after reading there is room again. */
	assert_int_equal(fcntl(end, F_SETFL, O_NONBLOCK), 0);
	ssize_t r;

	do {
		r = read(end, out, sizeof(out));
	} while (r > 0);
	say(n);
	assert_int_equal(log_lost(), lost + 2);
	r = read(end, out, sizeof(out) - 1);
	assert_true(r > 0);
	out[r] = '\0';

	const char *start = out[0] == '\n' ? out + 1 : out;
	json_t *j = json_loads(start, 0, NULL);

	assert_non_null(j);
	assert_int_equal(json_integer_value(json_object_get(j, "n")), n);
	json_decref(j);
}

TEST(full_pipe, NULL, restore)
{
	int p[2];

	assert_return_code(pipe2(p, O_CLOEXEC), errno);
	redirect(p[1]);
	fill(p[0]);
	(void)fd_close(p[0]);
	(void)fd_close(p[1]);
}

TEST(full_socket, NULL, restore)
{
	int p[2];

	assert_return_code(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p), errno);
	redirect(p[1]);
	fill(p[0]);
	(void)fd_close(p[0]);
	(void)fd_close(p[1]);
}

/* A reader that is gone, and a closed stderr. */
TEST(broken, NULL, restore)
{
	uint64_t lost = log_lost();
	int p[2];

	for (int kind = 0; kind < 2; kind++) {
		assert_return_code(
			kind ? socketpair(AF_UNIX, SOCK_STREAM, 0, p) : pipe2(p, O_CLOEXEC), errno);
		redirect(p[1]);
		log_setup(LOG_LEVEL_INFO, true);
		(void)fd_close(p[0]);
		(void)fd_close(p[1]);
		say(1);
		assert_int_equal(log_lost(), ++lost);
	}
	/* Gone before the setup. */
	assert_return_code(pipe2(p, O_CLOEXEC), errno);
	redirect(p[1]);
	(void)fd_close(p[0]);
	(void)fd_close(p[1]);
	log_setup(LOG_LEVEL_INFO, true);
	say(1);
	assert_int_equal(log_lost(), ++lost);
	(void)close(STDERR_FILENO);
	log_setup(LOG_LEVEL_INFO, true);
	say(1);
	assert_int_equal(log_lost(), ++lost);
}

int main(void)
{
	int r = unit_run();

	buf_free(&line);
	return r;
}
