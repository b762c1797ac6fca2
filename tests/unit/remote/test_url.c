/* SPDX-License-Identifier: Apache-2.0 */
/* test_url.c - Names of sandboxes, NAME:PATH, addresses and paths of the daemon. */
#include <string.h>

#include "../unit.h"
#include "base/buf.h"
#include "base/err.h"
#include "remote/url.h"

TEST(here_and_there)
{
	static const struct {
		const char *arg;
		int r;
		bool remote;
		const char *name, *path;
	} cases[] = {
		{ "file", 0, false, "", "file" },
		{ "-", 0, false, "", "-" },
		{ "./a:b", 0, false, "", "./a:b" },
		{ "/tmp/a:b", 0, false, "", "/tmp/a:b" },
		{ "dir/x:y", 0, false, "", "dir/x:y" },
		{ "demo:/data/a", 0, true, "demo", "/data/a" },
		{ "demo:a:b", 0, true, "demo", "a:b" },
		{ "demo:", 0, true, "demo", "." },
		{ "d.e_m-o9:x", 0, true, "d.e_m-o9", "x" },
		{ "", -22, false, "", "" },
		{ ":x", -22, false, "", "" },
		{ "a b:x", -22, false, "", "" },
		{ "-a:x", -22, false, "", "" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sandbox_path p;
		struct err e = { 0 };

		assert_int_equal(sandbox_path_parse(cases[i].arg, &p, &e), cases[i].r);
		if (cases[i].r == 0) {
			assert_int_equal(p.remote, cases[i].remote);
			assert_string_equal(p.name, cases[i].name);
			assert_string_equal(p.path, cases[i].path);
		} else {
			assert_int_not_equal(strlen(e.msg), 0);
		}
	}
}

TEST(name_bounds)
{
	char name[66];

	memset(name, 'a', sizeof(name));
	assert_true(sandbox_name_valid(name, 64));
	assert_false(sandbox_name_valid(name, 65));
	assert_false(sandbox_name_valid(name, 0));
	assert_false(sandbox_name_valid("a/b", 3));
	assert_false(sandbox_name_valid("a\0b", 3));
	assert_false(sandbox_name_valid("..", 2));
}

TEST(base)
{
	static const char *const cases[][2] = { { "/a/b", "b" }, { "a", "a" },   { "a/b///", "b" },
						{ "/", "" },     { "./.", "." }, { "x/..", ".." } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t len;
		const char *base = sandbox_path_base(cases[i][0], &len);

		assert_int_equal(len, strlen(cases[i][1]));
		assert_memory_equal(base, cases[i][1], len);
	}
}

TEST(url)
{
	static const struct {
		const char *s, *base, *host;
		bool tls, loopback;
	} good[] = {
		{ "http://localhost:8001", "http://localhost:8001", "localhost", false, true },
		{ "https://box.example/", "https://box.example", "box.example", true, false },
		{ "http://127.9.9.9", "http://127.9.9.9", "127.9.9.9", false, true },
		{ "http://[::1]:80/x//", "http://[::1]:80/x", "::1", false, true },
		{ "http://128.0.0.1", "http://128.0.0.1", "128.0.0.1", false, false },
		{ "http://localhost.evil", "http://localhost.evil", "localhost.evil", false,
		  false },
	};
	static const char *const bad[] = {
		"",
		"localhost:8001",
		"ftp://x",
		"http://",
		"http:///x",
		"http://a:b@c",
		"http://x?q",
		"http://x#f",
		"http://x y",
		"http://x:0",
		"http://x:65536",
		"http://x:",
		"http://[::1",
		"http://x:8x",
		"http://\x01",
		"http://x\r\nA: b",
		"http://user@h",
		"http://[]:80",
	};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct url u;

		assert_int_equal(url_parse(good[i].s, &u, NULL), 0);
		assert_string_equal(u.base, good[i].base);
		assert_string_equal(u.host, good[i].host);
		assert_int_equal(u.tls, good[i].tls);
		assert_int_equal(u.loopback, good[i].loopback);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct url u;
		struct err e = { 0 };

		assert_int_not_equal(url_parse(bad[i], &u, &e), 0);
		assert_int_not_equal(strlen(e.msg), 0);
	}
}

TEST(paths)
{
	_buf_ struct buf b = BUF_INIT(4096);

	url_sandbox(&b, "a/../b", "/files");
	url_query(&b, "path", "/x y&z=%\xc3\xa9\n");
	url_query_uint(&b, "limit", 18446744073709551615ull);
	assert_string_equal(buf_str(&b),
			    "/v1/sandboxes/a%2F..%2Fb/files?path=%2Fx%20y%26z%3D%25%C3%A9%0A"
			    "&limit=18446744073709551615");
}
