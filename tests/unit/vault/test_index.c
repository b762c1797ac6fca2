/* SPDX-License-Identifier: Apache-2.0 */
/* test_index.c - Addresses of package indexes: their parts, and their credentials. */
#include <errno.h>
#include <string.h>

#include "../unit.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "vault/index.h"

TEST(parts)
{
	static const struct {
		const char *text, *url, *inside, *host, *name, *user, *password;
		uint16_t port;
	} good[] = {
		{ "https://pypi.org/simple", "https://pypi.org/simple", "https://pypi.org/simple",
		  "pypi.org", "pypi.org", "", "", 443 },
		{ "https://me:w%40rd@Mirror.Example:8443/a/simple/",
		  "https://Mirror.Example:8443/a/simple/", "https://Mirror.Example:8443/a/simple/",
		  "mirror.example", "mirror.example", "me", "w@rd", 8443 },
		{ "https://token@a.test", "https://a.test", "https://a.test", "a.test", "a.test",
		  "token", "", 443 },
		{ "https://a@b:c:d@a.test/", "https://a.test/", "https://a.test/", "a.test",
		  "a.test", "a@b", "c:d", 443 },
		{ "http://localhost:3141/root", "http://localhost:3141/root",
		  "http://pip.caisson.internal:3141/root", "localhost", "pip.caisson.internal", "",
		  "", 3141 },
		{ "http://10.0.0.5/simple", "http://10.0.0.5/simple",
		  "http://pip.caisson.internal:80/simple", "10.0.0.5", "pip.caisson.internal", "",
		  "", 80 },
		{ "https://[fd00::5]:8443/", "https://[fd00::5]:8443/",
		  "https://pip.caisson.internal:8443/", "fd00::5", "pip.caisson.internal", "", "",
		  8443 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		struct index_keys keys = { 0 };
		struct index_url u;

		assert_int_equal(index_url_parse(INDEX_PIP, good[i].text, &u, &keys, NULL), 0);
		assert_string_equal(u.url, good[i].url);
		assert_string_equal(u.inside, good[i].inside);
		assert_string_equal(u.host, good[i].host);
		assert_string_equal(u.name, good[i].name);
		assert_int_equal(u.port, good[i].port);
		assert_string_equal(keys.value[INDEX_USER], good[i].user);
		assert_string_equal(keys.value[INDEX_PASSWORD], good[i].password);
	}
}

TEST(refused)
{
	static const char *const bad[] = {
		"",
		"pypi.org",
		"ftp://a.test/",
		"https://",
		"https:///simple",
		"https://a.test:0/",
		"https://a.test:65536/",
		"https://a.test:x/",
		"https://a.test?q=1",
		"https://a.test/ b",
		"https://a b/",
		"https://127.1/",
		"https://2130706433/",
		"https://[fd00::5/",
		"https://[x]/",
		"https://canary:can%00ary@a.test/",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct index_keys keys = { 0 };
		struct index_url u;
		struct err e = { 0 };

		assert_int_equal(index_url_parse(INDEX_PIP, bad[i], &u, &keys, &e), -EINVAL);
		assert_true(e.msg[0] && !strstr(e.msg, "canary"));
	}
	struct err e = { 0 };
	struct index_url u;

	assert_int_equal(index_url_parse(INDEX_PIP, "https://canary:word@a.test/", &u, NULL, &e),
			 -EINVAL);
	assert_true(strstr(e.msg, "caisson serve") && !strstr(e.msg, "canary"));
}

/* One line each, bound to the index; never over a plain connection, and never a line more. */
TEST(lines)
{
	_buf_ struct buf lines = BUF_INIT(4096);
	struct index_keys keys = { 0 };
	struct index_url u;
	struct err e = { 0 };
	struct vault v;

	assert_int_equal(index_url_parse(INDEX_NPM, "https://me:word@a.test:99/", &u, &keys, NULL),
			 0);
	assert_int_equal(index_keys_lines(INDEX_NPM, &u, &keys, &lines, NULL), 0);
	assert_string_equal(buf_str(&lines),
			    "CAISSON_NPM_USER@a.test=me\nCAISSON_NPM_PASSWORD@a.test=word\n");
	assert_int_equal(vault_init(&v, false), 0);
	assert_int_equal(vault_add(&v, buf_str(&lines), lines.len, NULL), 0);
	vault_free(&v);
	buf_clear(&lines);
	assert_int_equal(index_url_parse(INDEX_PIP, "http://me:word@a.test/", &u, &keys, NULL), 0);
	assert_int_equal(index_keys_lines(INDEX_PIP, &u, &keys, &lines, &e), -EINVAL);
	assert_true(strstr(e.msg, "https") && !strstr(e.msg, "word"));
	assert_int_equal(index_url_parse(INDEX_PIP, "https://me:x%0aY=z@a.test/", &u, &keys, NULL),
			 0);
	assert_int_equal(index_keys_lines(INDEX_PIP, &u, &keys, &lines, &e), -EINVAL);
	assert_int_equal(lines.len, 0);
	index_keys_wipe(&keys);
	assert_int_equal(index_keys_lines(INDEX_PIP, &u, &keys, &lines, &e), 0);
	assert_int_equal(lines.len, 0);
}

TEST(names)
{
	assert_true(index_key_reserved("CAISSON_PIP_USER"));
	assert_true(index_key_reserved("CAISSON_NPM_TOKEN"));
	assert_false(index_key_reserved("CAISSON_TOKEN"));
}
