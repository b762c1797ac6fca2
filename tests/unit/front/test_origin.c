/* SPDX-License-Identifier: Apache-2.0 */
/* test_origin.c - Hosts, origins and query names as strangers write them. */
#include "base/fd.h"
#include "front/http/request.h"
#include "front/support/origin.h"

#include <string.h>

#include "../unit.h"

TEST(host)
{
	static const struct {
		const char *text, *host;
		unsigned int port;
		bool address, any;
	} rows[] = {
		{ "localhost", "localhost", 0, false, false },
		{ "LocalHost.:8001", "localhost", 8001, false, false },
		{ "127.0.0.1:1", "127.0.0.1", 1, true, false },
		{ "0.0.0.0", "0.0.0.0", 0, true, true },
		{ "[::1]:65535", "::1", 65535, true, false },
		{ "[0:0:0:0:0:0:0:1]", "::1", 0, true, false },
		{ "[::]", "::", 0, true, true },
		{ "a-b_c.example.:80", "a-b_c.example", 80, false, false },
		{ "127.0.0.1.:1", "127.0.0.1", 1, true, false },
		{ "0.0.0.0.", "0.0.0.0", 0, true, true },
		/* Odd spellings of an address are names, and so never ours. */
		{ "127.1", "127.1", 0, false, false },
		{ "2130706433", "2130706433", 0, false, false },
		{ "0x7f.0.0.1", "0x7f.0.0.1", 0, false, false },
		{ "127.0.0.01", "127.0.0.01", 0, false, false },
	};
	static const char *const bad[] = {
		"",
		":80",
		"a:",
		"a:0",
		"a:65536",
		"a:x",
		"a:+1",
		"a:80 ",
		"a b",
		"a/b",
		"u@a",
		"[::1",
		"::1",
		"[::1]x",
		"[]",
		"[::1]:",
		"[a]",
		"[fe80::1%eth0]",
		"a..b",
		".a",
		".",
		"a:1:2",
		"\xc3\xa4",
		"a\tb",
		"a,b",
		"*",
		"[127.0.0.1]",
		"0123456789012345678901234567890123456789012345678901234567890123", /* 64 */
	};
	struct origin o;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_true(origin_parse_host(rows[i].text, &o));
		assert_string_equal(o.host, rows[i].host);
		assert_string_equal(o.scheme, "");
		assert_int_equal(o.port, rows[i].port);
		assert_int_equal(o.is_address, rows[i].address);
		assert_int_equal(o.is_any, rows[i].any);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (origin_parse_host(bad[i], &o))
			fail_msg("'%s' was taken", bad[i]);
	char name[400];

	memset(name, 'a', sizeof(name));
	for (size_t i = 50; i < sizeof(name); i += 50)
		name[i] = '.';
	name[253] = '\0';
	assert_true(origin_parse_host(name, &o));
	name[253] = 'a';
	name[254] = '\0';
	assert_false(origin_parse_host(name, &o));
	name[254] = 'a';
	name[399] = '\0';
	assert_false(origin_parse_host(name, &o));
}

TEST(origins)
{
	struct origin o, host;

	assert_true(origin_parse("HTTP://LocalHost:8001", &o));
	assert_string_equal(o.scheme, "http");
	assert_int_equal(o.port, 8001);
	assert_true(origin_parse("https://a.example", &o));
	assert_int_equal(o.port, 443);
	assert_true(origin_parse("chrome-extension://abcdef", &o));
	assert_int_equal(o.port, 0);
	assert_false(origin_parse("null", &o));
	assert_false(origin_parse("", &o));
	assert_false(origin_parse("http://", &o));
	assert_false(origin_parse("http://a/", &o));
	assert_false(origin_parse("http://a http://b", &o));
	assert_false(origin_parse("ht tp://a", &o));
	assert_false(origin_parse("+x://a", &o));
	assert_false(origin_parse("0123456789012345678901234567890123://a", &o));

	/* A page and its own server. */
	static const struct {
		const char *origin, *host;
		bool same;
	} rows[] = {
		{ "http://localhost:8001", "localhost:8001", true },
		{ "https://localhost:8001", "LOCALHOST:8001", true },
		{ "http://localhost", "localhost", true },
		{ "http://localhost:80", "localhost", true },
		{ "https://localhost", "localhost:443", true },
		{ "http://[::1]:8001", "[0::1]:8001", true },
		{ "http://localhost:3000", "localhost:8001", false },
		{ "http://localhost", "localhost:8001", false },
		{ "http://127.0.0.1:8001", "localhost:8001", false },
		{ "https://localhost", "localhost:80", false },
		{ "file://localhost", "localhost", false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_true(origin_parse(rows[i].origin, &o));
		assert_true(origin_parse_host(rows[i].host, &host));
		if (origin_matches_host(&o, &host) != rows[i].same)
			fail_msg("%s and %s", rows[i].origin, rows[i].host);
	}
}

TEST(query)
{
	const char *at = "&&a=1&b%5Fc=&d+e&%&%4&%zz=1&&f%00=x&=v&";
	static const char *const want[] = { "a", "b_c", "d e", "%", "%4", "%zz", "f?", "" };
	char name[QUERY_NAME_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		assert_true(query_name_next(&at, name));
		assert_string_equal(name, want[i]);
	}
	assert_false(query_name_next(&at, name));
	assert_false(query_name_next(&at, name));

	char longest[200];

	memset(longest, 'x', sizeof(longest));
	longest[199] = '\0';
	at = longest;
	assert_true(query_name_next(&at, name));
	assert_int_equal(strlen(name), QUERY_NAME_MAX - 1);
	assert_false(query_name_next(&at, name));
}
