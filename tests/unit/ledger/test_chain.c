/* SPDX-License-Identifier: Apache-2.0 */
/* test_chain.c - One line: what is written, what is hashed, and what is noticed. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/utf8.h"
#include "ledger/chain.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../unit.h"

#define TIME_NS (UINT64_C(1794799516) * CLOCK_NS_PER_S + 123456789) /* 2026-11-16T03:25:16 */
#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"

static struct chain chain;
static struct buf line = BUF_INIT(CHAIN_LINE_MAX);

static int setup(void **state)
{
	(void)state;
	return chain_open(&chain, NULL);
}

static int teardown(void **state)
{
	(void)state;
	chain_close(&chain);
	buf_free(&line);
	return 0;
}

struct unit_fixture unit_group = { setup, teardown };

/* A line after @link, which moves on. The result is without the newline. */
static const char *format(struct chain_link *link, const char *owner, const struct ledger_field *f,
			  size_t n)
{
	const struct ledger_event event = { "execution.end", owner, "job", f, n };

	assert_int_equal(chain_format(&chain, &line, link, TIME_NS, &event, link), 0);
	assert_in_range(line.len, 1, CHAIN_LINE_MAX);
	assert_int_equal(line.data[line.len - 1], '\n');
	line.data[--line.len] = '\0';
	assert_null(strchr(line.data, '\n'));
	assert_true(utf8_valid(line.data, line.len));
	return line.data;
}
#define FORMAT(link, ...)                                                                          \
	format(link, "ann", (struct ledger_field[]){ __VA_ARGS__ },                                \
	       sizeof((struct ledger_field[]){ __VA_ARGS__ }) / sizeof(struct ledger_field))

TEST(exact_bytes)
{
	struct chain_link link;

	chain_start(&link);
	/* The hashes were computed by another program. */
	assert_string_equal(
		FORMAT(&link, L_SHA256("code_sha256", "print(1)", 8), L_INT("exit_code", -1),
		       L_BOOL("ok", false), L_OBJECT("limits"), L_UINT("memory_bytes", 512),
		       L_STRN("note", "a\033bc", 3), L_END, L_STR("cause", NULL)),
		"{\"seq\":1,\"time\":\"2026-11-16T03:25:16.123Z\",\"event\":\"execution.end\","
		"\"owner\":\"ann\",\"sandbox\":\"job\",\"code_sha256\":"
		"\"d287bb7f9d15abdc5b6e98536263815744b6ef21c8f3c839fc434ca70d8efe99\","
		"\"exit_code\":-1,\"ok\":false,\"limits\":{\"memory_bytes\":512,"
		"\"note\":\"a\\u001bb\"},"
		"\"cause\":null,\"prev\":\"" ZEROS "\",\"hash\":"
		"\"7e9ac11b5f77f7fa5ab51b7721bd5e1b8573121a605e279e6d1ad7f22366dc8d\"}");
	assert_int_equal(link.seq, 1);
	assert_string_equal(link.hash,
			    "7e9ac11b5f77f7fa5ab51b7721bd5e1b8573121a605e279e6d1ad7f22366dc8d");
	assert_non_null(strstr(FORMAT(&link, L_INT("exit_code", 0)),
			       "\"prev\":\"7e9ac11b5f77f7fa5ab51b7721bd5e1b"));
}

/* Values that a guest or a client chose can fill a line, and break nothing. */
TEST(hostile_values)
{
	struct chain_link link, at;
	struct ledger_field many[80];
	char value[4096];

	chain_start(&link);
	chain_start(&at);
	memset(value, 0x01, sizeof(value)); /* six bytes each once escaped */
	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		many[i] = L_STRN("value", value, sizeof(value));
	const char *text = format(&link, "\xff\xfe\"}\n{", many, ARRAY_SIZE(many));

	assert_non_null(strstr(text, ",\"cut\":true,\"prev\":\""));
	assert_non_null(strstr(text, "\"owner\":\"\xef\xbf\xbd\xef\xbf\xbd\\\"}\\n{\""));
	assert_int_equal(chain_check(&chain, text, strlen(text), &at, NULL), 0);

	/* Cut between characters: 256 bytes are 85 of three bytes and one that does not fit. */
	for (size_t i = 0; i + 3 <= sizeof(value); i += 3)
		memcpy(value + i, "\xe2\x82\xac", 3);
	text = FORMAT(&link, L_STRN("value", value, 4095));
	const char *end = strstr(text, "\xe2\x80\xa6\",\"prev\"");

	assert_non_null(end);
	assert_int_equal(end - strstr(text, "\xe2\x82\xac"), 255);

	/* A field that alone is longer than a line: the object goes, what follows stays. */
	struct ledger_field object[70];

	memset(value, 0x01, sizeof(value));
	object[0] = L_OBJECT("usage");
	for (size_t i = 1; i < ARRAY_SIZE(object) - 2; i++)
		object[i] = L_STRN("value", value, sizeof(value));
	object[ARRAY_SIZE(object) - 2] = L_END;
	object[ARRAY_SIZE(object) - 1] = L_BOOL("ok", true);
	text = format(&link, NULL, object, ARRAY_SIZE(object));
	assert_non_null(
		strstr(text, "\"owner\":null,\"sandbox\":\"job\",\"ok\":true,\"cut\":true,"));
}

TEST(mistakes_of_the_caller)
{
	const struct ledger_field wrong[][2] = {
		{ L_STR("seq", "1"), L_BOOL("x", true) },
		{ L_STR("hash", "1"), L_BOOL("x", true) },
		{ L_STR("Upper", "1"), L_BOOL("x", true) },
		{ L_STR("", "1"), L_BOOL("x", true) },
		{ L_STR("a\"b", "1"), L_BOOL("x", true) },
		{ L_OBJECT("open"), L_BOOL("x", true) },
		{ L_OBJECT("open"), L_OBJECT("inner") },
		{ L_END, L_BOOL("x", true) },
	};
	struct chain_link link;

	chain_start(&link);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		const struct ledger_event event = { "e", NULL, NULL, wrong[i], 2 };

		assert_int_equal(chain_format(&chain, &line, &link, TIME_NS, &event, &link),
				 -EINVAL);
		assert_int_equal(link.seq, 0);
	}
	const struct ledger_event event = { "no spaces", NULL, NULL, NULL, 0 };

	assert_int_equal(chain_format(&chain, &line, &link, TIME_NS, &event, &link), -EINVAL);
}

/* No byte of a line can be changed, dropped or added without being noticed. */
TEST(every_byte_counts)
{
	struct chain_link link, start;
	char copy[1024];

	chain_start(&link);
	chain_start(&start);
	const char *text = FORMAT(&link, L_INT("exit_code", 0), L_STR("status", "ok"));
	size_t len = strlen(text);

	for (size_t i = 0; i < len; i++) {
		for (unsigned int bit = 0; bit < 8; bit++) {
			struct chain_link at = start;

			memcpy(copy, text, len);
			copy[i] = (char)(copy[i] ^ (1 << bit));
			assert_int_equal(chain_check(&chain, copy, len, &at, NULL), -EBADMSG);
			assert_int_equal(at.seq, 0);
		}
		struct chain_link at = start;

		memcpy(copy, text, i);
		memcpy(copy + i, text + i + 1, len - i - 1);
		assert_int_equal(chain_check(&chain, copy, len - 1, &at, NULL), -EBADMSG);
		memcpy(copy, text, i);
		copy[i] = ' ';
		memcpy(copy + i + 1, text + i, len - i);
		assert_int_equal(chain_check(&chain, copy, len + 1, &at, NULL), -EBADMSG);
		assert_int_equal(chain_check(&chain, text, i, &at, NULL), -EBADMSG);
	}
	assert_int_equal(chain_check(&chain, text, len, &start, NULL), 0);
	assert_int_equal(start.seq, 1);
}

TEST(order)
{
	char lines[4][1024];
	struct chain_link link, at;
	struct err e;

	chain_start(&link);
	for (int i = 0; i < 4; i++)
		(void)snprintf(lines[i], sizeof(lines[i]), "%s", FORMAT(&link, L_INT("i", i)));
#define CHECK(i) chain_check(&chain, lines[i], strlen(lines[i]), &at, &e)
	chain_start(&at);
	assert_int_equal(CHECK(0), 0);
	assert_int_equal(CHECK(2), -EBADMSG);
	assert_string_equal(e.msg, "line number 2 is missing before this one");
	assert_int_equal(CHECK(3), -EBADMSG);
	assert_string_equal(e.msg, "line numbers 2 to 3 are missing before this one");
	assert_int_equal(CHECK(0), -EBADMSG);
	assert_non_null(strstr(e.msg, "number 2 is due"));
	/* The right number, from another ledger. */
	struct chain_link other = at;

	memset(other.hash, 'a', CHAIN_HEX);
	(void)snprintf(lines[3], sizeof(lines[3]), "%s", FORMAT(&other, L_INT("i", 9)));
	assert_int_equal(CHECK(3), -EBADMSG);
	assert_non_null(strstr(e.msg, "does not follow the one before"));
	assert_int_equal(CHECK(1), 0);
	assert_int_equal(CHECK(2), 0);
	/* Without a place, any line is a beginning; but number 1 has nothing before it. */
	at.known = false;
	assert_int_equal(CHECK(2), 0);
	assert_int_equal(at.seq, 3);
	chain_start(&other);
	memset(other.hash, 'a', CHAIN_HEX);
	(void)snprintf(lines[3], sizeof(lines[3]), "%s", FORMAT(&other, L_INT("i", 9)));
	at.known = false;
	assert_int_equal(CHECK(3), -EBADMSG);
}
