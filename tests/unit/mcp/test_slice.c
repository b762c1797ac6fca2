/* SPDX-License-Identifier: Apache-2.0 */
/* test_slice.c - Members of JSON objects as text. */
#include "mcp/slice.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit.h"

static const char *const keys[] = { "id", "result", "error" };

static int look(const char *text, struct slice s[3])
{
	return slice_members(text, strlen(text), keys, 3, s);
}

static void is(const struct slice *s, const char *text)
{
	if (!text) {
		assert_null(s->at);
		return;
	}
	assert_non_null(s->at);
	assert_int_equal(s->len, strlen(text));
	assert_memory_equal(s->at, text, s->len);
}

TEST(members)
{
	struct slice s[3];

	assert_int_equal(look("{}", s), 0);
	is(&s[0], NULL);
	assert_int_equal(look(" { \"id\" : 7 , \"result\" : { \"id\" : [ 1, {\"a\":\"}\"} ] } , "
			      "\"x\":null } ",
			      s),
			 0);
	is(&s[0], "7");
	is(&s[1], "{ \"id\" : [ 1, {\"a\":\"}\"} ] }");
	is(&s[2], NULL);
	assert_int_equal(slice_id(&s[0]), 7);
	assert_int_equal(look("{\"error\":\"a\\\"b\\u00e4\",\"result\":[[],{},[{}]]}", s), 0);
	is(&s[2], "\"a\\\"b\\u00e4\"");
	is(&s[1], "[[],{},[{}]]");
	assert_int_equal(look("{\"id\":-1.5e+3,\"result\":true,\"error\":false}", s), 0);
	is(&s[0], "-1.5e+3");
	assert_true(slice_is(&s[1], "true"));
}

TEST(refused)
{
	static const char *const bad[] = {
		"",
		"[]",
		"7",
		"{",
		"}",
		"{}x",
		"{,}",
		"{\"id\"}",
		"{\"id\":}",
		"{\"id\":1,}",
		"{\"id\":01}",
		"{\"id\":+1}",
		"{id:1}",
		"{\"id\":[1,]}",
		"{\"id\":[,1]}",
		"{\"id\":[1 2]}",
		"{\"id\":{1}}",
		"{\"id\":[}",
		"{\"id\":[1}",
		"{\"id\":tru}",
		"{\"id\":nan}",
		"{\"id\":1.}",
		"{\"id\":1e}",
		"{\"id\":\"a\nb\"}",
		"{\"id\":\"\\x\"}",
		"{\"id\":\"\\u00g0\"}",
		"{\"id\":\"",
		"{\"id\":1,\"id\":2}",
		"{\"id\":\"\xff\"}",
		"{\"a\" \"b\"}",
		"{\"a\":1 \"b\":2}",
	};
	struct slice s[3];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (look(bad[i], s) != -EINVAL)
			fail_msg("%s", bad[i]);
}

TEST(depth)
{
	char text[3000];
	struct slice s[3];

	for (unsigned int n = 1; n < 1000; n++) {
		size_t len = (size_t)snprintf(text, sizeof(text), "{\"id\":");

		memset(text + len, '[', n);
		memset(text + len + n, ']', n);
		memcpy(text + len + 2 * n, "}", 2);
		assert_int_equal(look(text, s), n < SLICE_DEPTH_MAX ? 0 : -ELOOP);
	}
}

TEST(id)
{
	static const struct {
		const char *text;
		uint64_t id;
	} rows[] = { { "1", 1 },
		     { "9007199254740992", UINT64_C(1) << 53 },
		     { "9007199254740993", 0 },
		     { "0", 0 },
		     { "01", 0 },
		     { "-1", 0 },
		     { "1.0", 0 },
		     { "\"1\"", 0 },
		     { "99999999999999999999", 0 } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct slice s = { rows[i].text, strlen(rows[i].text) };

		assert_int_equal(slice_id(&s), rows[i].id);
	}
}

TEST(one_line)
{
	char text[] = "{\r\n \"a\": 1\n}";

	slice_one_line(text, strlen(text));
	assert_string_equal(text, "{   \"a\": 1 }");
}
