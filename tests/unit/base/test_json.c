/* SPDX-License-Identifier: Apache-2.0 */
/* test_json.c - The JSON writer: exact output, every misuse, and python's parser as referee. */
#include "base/json.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit.h"
#include "base/buf.h"
#include "base/utf8.h"

#define DOCUMENT(j_, b_)                                                                           \
	_buf_ struct buf b_ = BUF_INIT(1 << 20);                                                   \
	struct json j_;                                                                            \
	json_init(&(j_), &(b_))

TEST(nesting_and_commas)
{
	DOCUMENT(j, b);

	json_object_begin(&j);
	json_member_str(&j, "s", "x");
	json_member_str(&j, "none", NULL);
	json_key(&j, "a");
	json_array_begin(&j);
	json_int(&j, -1);
	json_object_begin(&j);
	json_object_end(&j);
	json_array_begin(&j);
	json_array_end(&j);
	json_none(&j);
	json_array_end(&j);
	json_member_int(&j, "i", INT64_MIN);
	json_member_uint(&j, "u", UINT64_MAX);
	json_member_bool(&j, "t", true);
	json_member_bool(&j, "f", false);
	json_member_null(&j, "n");
	json_member_raw(&j, "r", "[2]");
	json_object_end(&j);
	assert_int_equal(json_finish(&j), 0);
	assert_string_equal(buf_str(&b), "{\"s\":\"x\",\"none\":null,\"a\":[-1,{},[],null],"
					 "\"i\":-9223372036854775808,\"u\":18446744073709551615,"
					 "\"t\":true,\"f\":false,\"n\":null,\"r\":[2]}");
}

TEST(scalar_document_after_other_text)
{
	DOCUMENT(j, b);

	buf_puts(&b, "data: ");
	json_int(&j, 7);
	assert_int_equal(json_finish(&j), 0);
	assert_string_equal(buf_str(&b), "data: 7");
}

static void check_string(const char *s, size_t len, const char *want, bool replaced)
{
	DOCUMENT(j, b);

	assert_int_equal(json_strn(&j, s, len), replaced);
	assert_int_equal(json_finish(&j), 0);
	assert_string_equal(buf_str(&b), want);
}

TEST(strings)
{
	check_string("", 0, "\"\"", false);
	check_string(NULL, 0, "\"\"", false);
	check_string("a\"b\\c/", 6, "\"a\\\"b\\\\c/\"", false);
	check_string("\b\f\n\r\t", 5, "\"\\b\\f\\n\\r\\t\"", false);
	check_string("\0\1\x1f\x7f", 4, "\"\\u0000\\u0001\\u001f\\u007f\"", false);
	check_string("\xc2\x80\xc2\x9f\xc2\xa0", 6, "\"\\u0080\\u009f\xc2\xa0\"", false);
	check_string("\xe2\x80\xa7\xe2\x80\xa8\xe2\x80\xa9", 9, "\"\xe2\x80\xa7\\u2028\\u2029\"",
		     false);
	check_string("\xe2\x80\xae\xe2\x80\xaf", 6, "\"\\u202e\xe2\x80\xaf\"", false);
	check_string("\xe2\x81\xa5\xe2\x81\xa6\xe2\x81\xa9\xe2\x81\xaa", 12,
		     "\"\xe2\x81\xa5\\u2066\\u2069\xe2\x81\xaa\"", false);
	check_string("\xe2\x80", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\"", true);
	check_string("\xef\xbf\xbd", 3, "\"\xef\xbf\xbd\"", false); /* U+FFFD itself */
	check_string("\xf0\x9f\xa6\x80", 4, "\"\xf0\x9f\xa6\x80\"", false);
	check_string("\xf0\x9f\xa6", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"", true);
	check_string("a\xff"
		     "b",
		     3,
		     "\"a\xef\xbf\xbd"
		     "b\"",
		     true);
	check_string("\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"", true);
	check_string("\xc3\"", 2, "\"\xef\xbf\xbd\\\"\"", true);
}

/* A string byte by byte, as in the standard. */
static bool quote_slowly(struct buf *b, const char *s, size_t len)
{
	static const char special[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
	bool replaced = false;

	(void)buf_puts(b, "\"");
	for (size_t i = 0; i < len;) {
		unsigned char c = (unsigned char)s[i];
		size_t n = utf8_next(s + i, len - i);
		const char *at = memchr(special, c, sizeof(special) - 1);
		bool c1 = n == 2 && c == 0xc2 && (unsigned char)s[i + 1] < 0xa0;

		if (at)
			(void)buf_printf(b, "\\%c", letters[at - special]);
		else if (c < 0x20 || c == 0x7f || c1)
			(void)buf_printf(b, "\\u%04x", c1 ? (unsigned char)s[i + 1] : c);
		else
			(void)buf_append(b, n ? s + i : "\xef\xbf\xbd", n ? n : 3);
		replaced |= n == 0;
		i += n ? n : 1;
	}
	(void)buf_puts(b, "\"");
	return replaced;
}

/* Of every length around the sizes in which it is written, of every density of what needs an
 * escape. */
TEST(long_strings)
{
	static char text[5000];

	srand(7);
	for (int density = 1; density <= 256; density *= 2) {
		for (size_t i = 0; i < sizeof(text); i++)
			text[i] = (char)(rand() % density ? 'a' + rand() % 26 : rand());
		for (size_t len = 0; len < sizeof(text); len += len < 80 ? 1 : 61) {
			_buf_ struct buf want = BUF_INIT(1 << 20);
			DOCUMENT(j, b);

			assert_int_equal(json_strn(&j, text, len), quote_slowly(&want, text, len));
			assert_int_equal(json_finish(&j), 0);
			assert_int_equal(b.len, want.len);
			assert_memory_equal(buf_str(&b), buf_str(&want), want.len);
			/* A buffer that holds just that holds it; one byte less does not. */
			_buf_ struct buf tight = BUF_INIT(want.len), small = BUF_INIT(want.len - 1);

			json_init(&j, &tight);
			(void)json_strn(&j, text, len);
			assert_int_equal(json_finish(&j), 0);
			assert_memory_equal(buf_str(&tight), buf_str(&want), want.len);
			json_init(&j, &small);
			(void)json_strn(&j, text, len);
			assert_int_equal(json_finish(&j), -EMSGSIZE);
		}
	}
}

TEST(keys_are_escaped)
{
	DOCUMENT(j, b);

	json_object_begin(&j);
	json_member_int(&j, "\"\n\xff", 1);
	json_member_int(&j, "", 2);
	json_object_end(&j);
	assert_int_equal(json_finish(&j), 0);
	assert_string_equal(buf_str(&b), "{\"\\\"\\n\xef\xbf\xbd\":1,\"\":2}");
}

TEST(base64)
{
	static const char *const pairs[][2] = {
		{ "", "" },
		{ "f", "Zg==" },
		{ "fo", "Zm8=" },
		{ "foo", "Zm9v" },
		{ "foob", "Zm9vYg==" },
		{ "fooba", "Zm9vYmE=" },
		{ "foobar", "Zm9vYmFy" },
		{ "\xff\xfe\xfd", "//79" },
		{ "\xfb\xef\xbe", "++++" },
	};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		DOCUMENT(j, b);
		char want[32];

		json_base64(&j, pairs[i][0], strlen(pairs[i][0]));
		assert_int_equal(json_finish(&j), 0);
		(void)snprintf(want, sizeof(want), "\"%s\"", pairs[i][1]);
		assert_string_equal(buf_str(&b), want);
	}
}

static void check_double(double v, unsigned int digits, const char *want)
{
	DOCUMENT(j, b);

	json_double(&j, v, digits);
	assert_int_equal(json_finish(&j), 0);
	assert_string_equal(buf_str(&b), want);
}

TEST(doubles)
{
	check_double(0.5, 3, "0.500");
	check_double(-1.25, 1, "-1.2");
	check_double(2, 0, "2");
	check_double(1.0 / 3, 99, "0.333333333");
	check_double((double)NAN, 2, "null");
	check_double((double)INFINITY, 2, "null");
	check_double(-(double)INFINITY, 2, "null");

	DOCUMENT(j, b);

	json_double(&j, -DBL_MAX, 9);
	assert_int_equal(json_finish(&j), 0);
	assert_int_equal(b.len, 1 + 309 + 1 + 9);
}

static void value_without_key(struct json *j)
{
	json_object_begin(j);
	json_int(j, 1);
}

static void container_without_key(struct json *j)
{
	json_object_begin(j);
	json_array_begin(j);
}

static void key_twice(struct json *j)
{
	json_object_begin(j);
	json_key(j, "a");
	json_key(j, "b");
}

static void key_in_array(struct json *j)
{
	json_array_begin(j);
	json_key(j, "a");
}

static void key_at_top(struct json *j)
{
	json_key(j, "a");
}

static void key_without_value(struct json *j)
{
	json_object_begin(j);
	json_key(j, "a");
	json_object_end(j);
}

static void wrong_end(struct json *j)
{
	json_array_begin(j);
	json_object_end(j);
}

static void end_at_top(struct json *j)
{
	json_object_end(j);
}

static void end_twice(struct json *j)
{
	json_array_begin(j);
	json_array_end(j);
	json_array_end(j);
}

static void two_documents(struct json *j)
{
	json_int(j, 1);
	json_int(j, 2);
}

static void two_containers(struct json *j)
{
	json_array_begin(j);
	json_array_end(j);
	json_object_begin(j);
	json_object_end(j);
}

static void not_closed(struct json *j)
{
	json_array_begin(j);
}

static void nothing(struct json *j)
{
	(void)j;
}

TEST(misuse)
{
	static void (*const misuses[])(struct json *) = {
		value_without_key, container_without_key, key_twice,      key_in_array,
		key_at_top,        key_without_value,     wrong_end,      end_at_top,
		end_twice,         two_documents,         two_containers, not_closed,
		nothing,
	};

	for (size_t i = 0; i < sizeof(misuses) / sizeof(misuses[0]); i++) {
		DOCUMENT(j, b);

		misuses[i](&j);
		assert_int_equal(json_finish(&j), -EPROTO);

		/* It sticks, and nothing is written any more. */
		size_t len = b.len;

		json_object_begin(&j);
		json_member_str(&j, "k", "v");
		json_object_end(&j);
		json_array_begin(&j);
		json_base64(&j, "x", 1);
		json_double(&j, 1, 1);
		json_array_end(&j);
		assert_int_equal(b.len, len);
		assert_int_equal(json_finish(&j), -EPROTO);
	}
}

TEST(depth)
{
	DOCUMENT(j, b);
	DOCUMENT(deep, b2);

	for (int i = 0; i < JSON_DEPTH_MAX; i++)
		json_array_begin(&j);
	for (int i = 0; i < JSON_DEPTH_MAX; i++)
		json_array_end(&j);
	assert_int_equal(json_finish(&j), 0);
	assert_int_equal(b.len, 2 * JSON_DEPTH_MAX);

	for (int i = 0; i < JSON_DEPTH_MAX + 5; i++)
		json_array_begin(&deep);
	for (int i = 0; i < JSON_DEPTH_MAX + 5; i++)
		json_array_end(&deep);
	assert_int_equal(json_finish(&deep), -ELOOP);
}

/* Half of a value is no value: its buffer's error fails the document. */
TEST(value_from_a_buffer)
{
	_buf_ struct buf value = BUF_INIT(8), b = BUF_INIT(64);
	struct json j;

	assert_int_equal(buf_puts(&value, "[1,2]"), 0);
	json_init(&j, &b);
	json_buf(&j, &value);
	assert_int_equal(json_finish(&j), 0);
	assert_string_equal(buf_str(&b), "[1,2]");
	buf_clear(&b);
	assert_int_equal(buf_puts(&value, "too long"), -EMSGSIZE);
	json_init(&j, &b);
	json_array_begin(&j);
	json_buf(&j, &value);
	json_array_end(&j);
	assert_int_equal(json_finish(&j), -EMSGSIZE);
}

/* Whatever the maximum: a document that does not fit whole is an error, one that fits is whole. */
TEST(buffer_limits)
{
	static const char want[] = "{\"k\":[\"\\u0001v\",\"eHl6\",1.5,true]}";

	for (size_t max = 0; max < sizeof(want) + 5; max++) {
		_buf_ struct buf b = BUF_INIT(max);
		struct json j;

		json_init(&j, &b);
		json_object_begin(&j);
		json_key(&j, "k");
		json_array_begin(&j);
		json_str(&j, "\001v");
		json_base64(&j, "xyz", 3);
		json_double(&j, 1.5, 1);
		json_bool(&j, true);
		json_array_end(&j);
		json_object_end(&j);
		if (max < sizeof(want) - 1) {
			assert_int_equal(json_finish(&j), -EMSGSIZE);
			assert_true(b.len <= max);
		} else {
			assert_int_equal(json_finish(&j), 0);
			assert_string_equal(buf_str(&b), want);
		}
	}
}

/*
 * Random bytes go out twice, as string and as base64, and an independent parser compares: the
 * string must be the bytes with each invalid one replaced, flagged exactly when it differs.
 */
static const char referee[] =
	"import base64, json, sys\n"
	"def want(raw):\n"
	"    out, i = '', 0\n"
	"    while i < len(raw):\n"
	"        for n in (1, 2, 3, 4):\n"
	"            try:\n"
	"                out += raw[i:i + n].decode(); i += n; break\n"
	"            except UnicodeDecodeError: pass\n"
	"        else: out += '\\ufffd'; i += 1\n"
	"    return out\n"
	"def no_constant(x): raise ValueError(x)\n"
	"doc = json.loads(sys.stdin.buffer.read().decode(), parse_constant=no_constant)\n"
	"assert len(doc) == 2000, len(doc)\n"
	"for d in doc:\n"
	"    raw = base64.b64decode(d['raw'], validate=True)\n"
	"    assert len(raw) == d['len'] and d['s'] == want(raw), raw\n"
	"    try: bad = raw.decode() is None\n"
	"    except UnicodeDecodeError: bad = True\n"
	"    assert d['replaced'] == bad, raw\n";

TEST(python_agrees)
{
	static const unsigned char crab[4] = { 0xf0, 0x9f, 0xa6, 0x80 };
	static const char pieces[] =
		"\"\\/\n\0\x7f\xc3\xa9\xe2\x80\xa8\xf0\x9f\xa6\x80\xed\xa0\xc0";
	_buf_ struct buf b = BUF_INIT(4 << 20);
	unsigned int seed = 7;
	struct json j;

	json_init(&j, &b);
	json_array_begin(&j);
	for (int i = 0; i < 2000; i++) {
		char raw[48];
		size_t len = (size_t)rand_r(&seed) % sizeof(raw);

		for (size_t k = 0; k < len; k++)
			raw[k] = i % 2 ? (char)(rand_r(&seed) >> 8) :
					 pieces[(size_t)rand_r(&seed) % (sizeof(pieces) - 1)];
		if (i % 4 == 0 && len >= sizeof(crab))
			memcpy(raw + len - sizeof(crab), crab, sizeof(crab));
		json_object_begin(&j);
		json_key(&j, "s");
		bool replaced = json_strn(&j, raw, len);

		json_member_bool(&j, "replaced", replaced);
		json_member_uint(&j, "len", len);
		json_key(&j, "raw");
		json_base64(&j, raw, len);
		json_object_end(&j);
	}
	json_array_end(&j);
	assert_int_equal(json_finish(&j), 0);

	if (system("python3 -c 'import json' >/dev/null 2>&1") != 0) {
		print_message("skipped: python3 is not installed\n");
		skip();
	}
	assert_int_equal(setenv("REFEREE", referee, 1), 0);
	FILE *f = popen("python3 -c \"$REFEREE\"", "we");

	assert_non_null(f);
	assert_int_equal(fwrite(b.data, 1, b.len, f), b.len);
	assert_int_equal(pclose(f), 0);
}
