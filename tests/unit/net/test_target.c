/* SPDX-License-Identifier: Apache-2.0 */
/* test_target.c - Targets, hosts and query parameters. */
#include "net/target.h"

#include <errno.h>
#include <string.h>

#include "../unit.h"
#include "base/buf.h"
#include "base/fd.h"

TEST(split)
{
	static const struct {
		const char *text, *authority, *path, *query; /* path NULL: refused */
	} rows[] = {
		{ "/", NULL, "/", NULL },
		{ "/a/b", NULL, "/a/b", NULL },
		{ "/a?", NULL, "/a", "" },
		{ "/a?b=c?d", NULL, "/a", "b=c?d" },
		{ "//a", NULL, "//a", NULL },
		{ "*", NULL, "*", NULL },
		{ "http://h/a?b", "h", "/a", "b" },
		{ "HTTPS://h:1/", "h:1", "/", NULL },
		{ "http://h", "h", "", NULL },
		{ "http://h?b", "h", "", "b" },
		{ "http://[::1]:80/", "[::1]:80", "/", NULL },
		{ "", NULL, NULL, NULL },
		{ "a", NULL, NULL, NULL },
		{ "?a", NULL, NULL, NULL },
		{ "*a", NULL, NULL, NULL },
		{ "h:80", NULL, NULL, NULL },
		{ "ftp://h/", NULL, NULL, NULL },
		{ "http:///a", NULL, NULL, NULL },
		{ "http://u@h/", NULL, NULL, NULL },
		{ "http://u:p@h/", NULL, NULL, NULL },
		{ "http://h:x/", NULL, NULL, NULL },
		{ "/a#b", NULL, NULL, NULL },
		{ "/a?b#c", NULL, NULL, NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct target t;
		const char *why = NULL;
		int r = target_split(rows[i].text, strlen(rows[i].text), &t, &why);

		if (!rows[i].path) {
			assert_int_equal(r, -EINVAL);
			assert_non_null(why);
			continue;
		}
		assert_int_equal(r, 0);
		assert_int_equal(t.path_len, strlen(rows[i].path));
		assert_memory_equal(t.path, rows[i].path, t.path_len);
		assert_int_equal(!t.query, !rows[i].query);
		if (t.query)
			assert_memory_equal(t.query, rows[i].query, t.query_len);
		assert_int_equal(!t.authority, !rows[i].authority);
		if (t.authority)
			assert_memory_equal(t.authority, rows[i].authority, t.authority_len);
	}
}

TEST(decode)
{
	static const struct {
		const char *text, *out; /* out NULL: refused */
	} rows[] = {
		{ "/", "/" },
		{ "//", "//" },
		{ "/a//b/", "/a//b/" },
		{ "/%61%62", "/ab" },
		{ "/%25%32%46", "/%2F" }, /* decoded once */
		{ "/caf%C3%A9", "/caf\xc3\xa9" },
		{ "/a+b", "/a+b" },
		{ "/...", "/..." },
		{ "/.a/..b/c./d..", "/.a/..b/c./d.." },
		{ "/%0a", "/\n" },
		{ "/%00", NULL },
		{ "/%2F", NULL },
		{ "/a%2fb", NULL },
		{ "/%5c", NULL },
		{ "/a\\b", NULL },
		{ "/%", NULL },
		{ "/%4", NULL },
		{ "/%zz", NULL },
		{ "/%4g", NULL },
		{ "/%%41", NULL },
		{ "/%u0041", NULL },
		{ "/%ff", NULL },
		{ "/%c3", NULL },
		{ "/%c0%af", NULL }, /* an overlong slash */
		{ "/%ed%a0%80", NULL },
		{ "/.", NULL },
		{ "/..", NULL },
		{ "/./a", NULL },
		{ "/a/..", NULL },
		{ "/a/../b", NULL },
		{ "/%2e%2E/b", NULL },
		{ "/a/%2e", NULL },
		{ "a", NULL },
		{ "", NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *why = NULL;
		char out[64];
		int r = target_decode_path(rows[i].text, strlen(rows[i].text), strlen(rows[i].text),
					   out, &why);

		if ((r == 0) != (rows[i].out != NULL))
			fail_msg("%s: %d %s", rows[i].text, r, why ? why : out);
		if (r == 0)
			assert_string_equal(out, rows[i].out);
		else
			assert_non_null(why);
	}
	assert_int_equal(target_decode_path("/a\0b", 4, 4, (char[8]){ 0 }, &(const char *){ NULL }),
			 -EINVAL);

	/* Behind what is ours a slash stays encoded; everything else is as before. */
	static const char theirs[] = "/a/x%2Fy%2f%2e", before[] = "/a%2F/x", dots[] = "/a/%2e%2e";
	const char *why = NULL;
	char out[32];

	assert_int_equal(target_decode_path(theirs, strlen(theirs), 3, out, &why), 0);
	assert_string_equal(out, "/a/x%2Fy%2f.");
	assert_int_equal(target_decode_path(before, strlen(before), 3, out, &why), -EINVAL);
	assert_int_equal(target_decode_path(dots, strlen(dots), 3, out, &why), -EINVAL);
}

TEST(host)
{
	static const char *const good[] = { "h",        "localhost:8001", "127.0.0.1",
					    "a.b-c_d.", "[::1]",          "[::1]:0",
					    "h:65535",  "A.EXAMPLE:80",   "[::ffff:1.2.3.4]" };
	static const char *const bad[] = { "",     ":80",  "h:",      "h:65536",  "h:123456",
					   "h:-1", "h:8a", "h h",     "h/a",      "u@h",
					   "[",    "[]",   "[::1",    "[::1]x",   "[g::]",
					   "h,h",  "h%41", "[::1]:x", "\xc3\xa9", "h\t" };
	char long_name[300];

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_true(host_valid(good[i], strlen(good[i])));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (host_valid(bad[i], strlen(bad[i])))
			fail_msg("'%s' was accepted", bad[i]);
	memset(long_name, 'a', sizeof(long_name));
	assert_true(host_valid(long_name, 255));
	assert_false(host_valid(long_name, 256));
}

TEST(query)
{
	static const char text[] = "a=1&&b=x+y%26z&c&=d&e=f=g&h=%C3%A9&i=%FF";
	static const char *const pairs[][2] = { { "a", "1" },   { "b", "x y&z" },
						{ "c", "" },    { "", "d" },
						{ "e", "f=g" }, { "h", "\xc3\xa9" },
						{ "i", "\xff" } };
	static const char *const bad[] = { "a=%", "a=%4", "%zz=a", "a=%00", "%ff=a", "a=1&b=%g0" };
	_buf_ struct buf name = BUF_INIT(64);
	_buf_ struct buf value = BUF_INIT(64);
	const char *pos = text;

	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		assert_int_equal(query_next(&pos, &name, &value), 1);
		assert_string_equal(buf_str(&name), pairs[i][0]);
		assert_string_equal(buf_str(&value), pairs[i][1]);
	}
	assert_int_equal(query_next(&pos, &name, &value), 0);
	assert_int_equal(query_next(&pos, &name, &value), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		int r = 1;

		for (pos = bad[i]; r == 1;)
			r = query_next(&pos, &name, &value);
		assert_int_equal(r, -EINVAL);
	}

	_buf_ struct buf small = BUF_INIT(3);

	pos = "a=1234";
	assert_int_equal(query_next(&pos, &name, &small), -EMSGSIZE);
}
