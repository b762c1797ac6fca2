/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_schema.c - Bodies that are not JSON, JSON that does not fit the schema, and the error for
 * each.
 */
#include "base/fd.h"
#include "base/utf8.h"
#include "front/support/schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit.h"

static bool is_abc(const char *s, size_t len)
{
	return strspn(s, "abc") == len;
}

static const char *const colours[] = { "red", "green", NULL };

static const struct field fields[] = {
	{ .name = "code",
	  .kind = FIELD_STRING,
	  .required = true,
	  .min = 1,
	  .max = 5,
	  .example = "\"x\"" },
	{ .name = "timeout", .kind = FIELD_INTEGER, .min = 1, .max = 120 },
	{ .name = "ratio", .kind = FIELD_NUMBER, .min = -0.5, .max = 2 },
	{ .name = "stream", .kind = FIELD_BOOLEAN },
	{ .name = "name", .kind = FIELD_STRING, .pattern = "^[abc]*$", .check = is_abc },
	{ .name = "colour", .kind = FIELD_STRING, .values = colours },
	{ .name = "bytes", .kind = FIELD_STRING, .nul = true },
	{ .name = "env", .kind = FIELD_STRING_MAP, .max = 2 },
	{ .name = "args", .kind = FIELD_STRING_LIST, .max = 3 },
	{ .name = "any", .kind = FIELD_INTEGER },
	{ 0 },
};
static const struct field optional[] = { { .name = "a", .kind = FIELD_STRING }, { 0 } };
static const struct field none[] = { { 0 } };

static struct schema_error e;

static json_t *parse_n(const char *body, size_t len, const struct field *f)
{
	memset(&e, 0xa5, sizeof(e));
	json_t *j = schema_parse(body, len, f, 0, &e);

	if (!j) {
		assert_true(e.kind == REFUSAL_MALFORMED || e.kind == REFUSAL_INVALID);
		assert_non_null(memchr(e.message, '\0', sizeof(e.message)));
		assert_non_null(memchr(e.field, '\0', sizeof(e.field)));
		assert_non_null(memchr(e.hint, '\0', sizeof(e.hint)));
		assert_true(utf8_valid(e.message, strlen(e.message)));
		assert_true(utf8_valid(e.field, strlen(e.field)));
		assert_true(e.message[0] != '\0');
	}
	return j;
}

static json_t *parse(const char *body)
{
	return parse_n(body, strlen(body), fields);
}

#define assert_good(body)                                                                          \
	do {                                                                                       \
		json_t *j_ = parse(body);                                                          \
		if (!j_)                                                                           \
			fail_msg("%s: %s", body, e.message);                                       \
		json_decref(j_);                                                                   \
	} while (0)

static void assert_bad(const char *body, enum refusal_kind kind, const char *code,
		       const char *field)
{
	json_t *j = parse(body);

	if (j)
		fail_msg("taken: %s", body);
	if (e.kind != kind || strcmp(e.code, code) != 0 || strcmp(e.field, field) != 0)
		fail_msg("%s: %d %s '%s' (%s)", body, (int)e.kind, e.code, e.field, e.message);
}

TEST(good)
{
	assert_good("{\"code\":\"x\"}");
	assert_good(" { \"code\" : \"x\" , \"timeout\" : 1 }\n");
	assert_good(
		"{\"code\":\"\\u00e4\xc3\xa4\xf0\x9f\x98\x80xx\",\"timeout\":120}"); /* 5
											characters
										      */
	assert_good(
		"{\"code\":\"x\",\"ratio\":1,\"stream\":false,\"name\":\"\",\"colour\":\"green\"}");
	assert_good("{\"code\":\"x\",\"ratio\":-0.5,\"bytes\":\"a\\u0000b\",\"env\":{}}");
	assert_good(
		"{\"code\":\"x\",\"env\":{\"A\":\"1\",\"B\":\"\"},\"any\":-9223372036854775808}");
	assert_good("{\"code\":\"x\",\"args\":[]}");
	assert_good("{\"code\":\"x\",\"args\":[\"\",\"-c\",\"\\u00e4\"]}");
	/* null where optional is absence. */
	json_t *j = parse("{\"code\":\"x\",\"timeout\":null,\"env\":null}");

	assert_non_null(j);
	assert_int_equal(json_object_size(j), 1);
	json_decref(j);
	/* An empty body, where nothing is needed. */
	j = parse_n("", 0, optional);
	assert_non_null(j);
	assert_int_equal(json_object_size(j), 0);
	json_decref(j);
	j = parse_n("{}", 2, none);
	json_decref(j);
	assert_non_null(j);
}

TEST(not_json)
{
	static const char *const bad[] = {
		"",
		" ",
		"{",
		"{\"code\":\"x\"",
		"{\"code\":\"x\"}}",
		"{\"code\":\"x\"} x",
		"{code:\"x\"}",
		"{'code':'x'}",
		"{\"code\":\"x\",}",
		"[1,]",
		"nul",
		"NaN",
		"{\"any\":NaN}",
		"{\"any\":Infinity}",
		"{\"any\":0x1}",
		"{\"any\":01}",
		"{\"any\":+1}",
		"{\"any\":.5}",
		"{\"any\":1.}",
		"{\"code\":\"a\nb\"}",
		"{\"code\":\"\\x\"}",
		"{\"code\":\"\\ud800\"}",
		"{\"code\":\"\xff\"}",
		"{\"code\":\"\xc0\x80\"}",
		"{\"code\":\"\xed\xa0\x80\"}",
		"\xef\xbb\xbf{\"code\":\"x\"}",
		"/**/{\"code\":\"x\"}",
		"{\"code\":\"x\"}//",
		"{\"a\\u0000\":1}",
		"{\"code\":\"x\"}{\"code\":\"x\"}",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_bad(bad[i], REFUSAL_MALFORMED, "malformed_json", "");
	/* A NUL byte does not end a string. */
	assert_null(parse_n("{\"code\":\"x\"}\0", 13, fields));
	assert_string_equal(e.code, "malformed_json");
	assert_bad("{\"code\":\"x\",\"code\":\"y\"}", REFUSAL_MALFORMED, "duplicate_key", "");
	assert_bad("{\"code\":\"x\",\"env\":{\"A\":\"1\",\"A\":\"2\"}}", REFUSAL_MALFORMED,
		   "duplicate_key", "");
	assert_bad("{\"any\":9223372036854775808}", REFUSAL_MALFORMED, "out_of_range", "");
	assert_bad("{\"any\":-9223372036854775809}", REFUSAL_MALFORMED, "out_of_range", "");
	assert_bad("{\"ratio\":1e999}", REFUSAL_MALFORMED, "out_of_range", "");
}

TEST(bombs)
{
	const size_t size = 2000000;
	char *text = malloc(size + 1);

	assert_non_null(text);
	memset(text, '[', size);
	text[size] = '\0';
	assert_bad(text, REFUSAL_MALFORMED, "too_deep", "");
	for (size_t i = 0; i < size; i++)
		text[i] = i % 2 ? ',' : '1';
	text[0] = '[';
	text[size - 1] = ']';
	assert_bad(text, REFUSAL_MALFORMED, "too_many_values", "");
	free(text);

	assert_true(schema_depth_ok("[[[]]]", 6, 3));
	assert_false(schema_depth_ok("[[[]]]", 6, 2));
	assert_true(schema_depth_ok("\"[[[\"", 5, 0));
	assert_true(schema_depth_ok("\"\\\"[[[\"", 7, 0));
	assert_false(schema_depth_ok("\"\\\\\"[", 5, 0));
	assert_true(schema_depth_ok("[][][]]]]{}", 11, 1));
	assert_true(schema_depth_ok("\"\\", 2, 0));
	/* Exactly as deep as is allowed. */
	char deep[80] = "";

	memset(deep, '[', 32);
	memset(deep + 32, ']', 32);
	assert_bad(deep, REFUSAL_INVALID, "not_an_object", "");
	memset(deep, '[', 33);
	memset(deep + 33, ']', 33);
	assert_bad(deep, REFUSAL_MALFORMED, "too_deep", "");
}

TEST(shape)
{
	assert_bad("[]", REFUSAL_INVALID, "not_an_object", "");
	assert_bad("\"x\"", REFUSAL_INVALID, "not_an_object", "");
	assert_bad("1", REFUSAL_INVALID, "not_an_object", "");
	assert_bad("null", REFUSAL_INVALID, "not_an_object", "");
	assert_bad("{}", REFUSAL_INVALID, "missing_field", "code");
	assert_string_equal(e.hint, "as in {\"code\": \"x\"}");
	assert_bad("{\"code\":null}", REFUSAL_INVALID, "wrong_type", "code");
	assert_bad("{\"code\":\"x\",\"time_out\":1}", REFUSAL_INVALID, "unknown_field", "time_out");
	assert_non_null(strstr(e.hint, "timeout"));
	assert_bad("{\"Code\":\"x\"}", REFUSAL_INVALID, "unknown_field", "Code");
	assert_null(parse_n("{\"a\":1}", 7, none));
	assert_string_equal(e.code, "unknown_field");
}

TEST(types)
{
	static const struct {
		const char *name;
		const char *values[8];
	} rows[] = {
		{ "code", { "1", "true", "[]", "{}", "1.5" } },
		{ "timeout", { "\"1\"", "1.0", "1e2", "true", "[]", "{}" } },
		{ "ratio", { "\"1\"", "true", "[]" } },
		{ "stream", { "0", "1", "\"true\"", "[]" } },
		{ "args", { "{}", "\"\"", "1", "[1]", "[\"a\",null]", "[[]]" } },
		{ "env", { "[]", "\"\"", "1", "{\"A\":1}", "{\"A\":null}", "{\"A\":{}}" } },
	};
	char body[128];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		for (size_t k = 0; k < ARRAY_SIZE(rows[i].values) && rows[i].values[k]; k++) {
			(void)snprintf(body, sizeof(body),
				       i ? "{\"code\":\"x\",\"%s\":%s}" : "{\"%s\":%s}",
				       rows[i].name, rows[i].values[k]);
			assert_bad(body, REFUSAL_INVALID, "wrong_type", rows[i].name);
		}
}

TEST(values)
{
	assert_bad("{\"code\":\"\"}", REFUSAL_INVALID, "out_of_range", "code");
	assert_bad("{\"code\":\"xxxxxx\"}", REFUSAL_INVALID, "out_of_range", "code");
	assert_bad("{\"code\":\"x\",\"timeout\":0}", REFUSAL_INVALID, "out_of_range", "timeout");
	assert_bad("{\"code\":\"x\",\"timeout\":121}", REFUSAL_INVALID, "out_of_range", "timeout");
	assert_bad("{\"code\":\"x\",\"timeout\":-1}", REFUSAL_INVALID, "out_of_range", "timeout");
	assert_bad("{\"code\":\"x\",\"timeout\":9223372036854775807}", REFUSAL_INVALID,
		   "out_of_range", "timeout");
	assert_bad("{\"code\":\"x\",\"ratio\":2.001}", REFUSAL_INVALID, "out_of_range", "ratio");
	assert_bad("{\"code\":\"x\",\"name\":\"abd\"}", REFUSAL_INVALID, "invalid_value", "name");
	assert_string_equal(e.hint, "it must match ^[abc]*$");
	assert_bad("{\"code\":\"x\",\"colour\":\"blue\"}", REFUSAL_INVALID, "invalid_value",
		   "colour");
	assert_string_equal(e.hint, "one of: red, green");
	assert_bad("{\"code\":\"a\\u0000b\"}", REFUSAL_INVALID, "invalid_value", "code");
	assert_bad("{\"code\":\"x\",\"colour\":\"red\\u0000\"}", REFUSAL_INVALID, "invalid_value",
		   "colour");
	assert_bad("{\"code\":\"x\",\"env\":{\"A\":\"\",\"B\":\"\",\"C\":\"\"}}", REFUSAL_INVALID,
		   "out_of_range", "env");
	assert_bad("{\"code\":\"x\",\"env\":{\"A\":\"\\u0000\"}}", REFUSAL_INVALID, "invalid_value",
		   "env");
	assert_bad("{\"code\":\"x\",\"args\":[\"\",\"\",\"\",\"\"]}", REFUSAL_INVALID,
		   "out_of_range", "args");
	assert_bad("{\"code\":\"x\",\"args\":[\"a\\u0000b\"]}", REFUSAL_INVALID, "invalid_value",
		   "args");
}

/* A quotation is short, and of whole characters. */
TEST(quotes)
{
	char body[400] = "{\"";

	for (size_t i = 0; i < 100; i++)
		memcpy(body + 2 + 3 * i, "\xe2\x82\xac", 3);
	memcpy(body + 302, "\":1}", 5);
	assert_null(parse(body));
	assert_string_equal(e.code, "unknown_field");
	assert_int_equal(strlen(e.field), 63);
	assert_non_null(strstr(e.message, "is not a field of this request"));
}

int main(void)
{
	schema_setup();
	return unit_run();
}
