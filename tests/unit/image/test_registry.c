/* SPDX-License-Identifier: Apache-2.0 */
/* test_registry.c - Challenges of a registry, the credentials for them, and their recipients. */
#include <string.h>

#include "../unit.h"
#include "base/err.h"
#include "base/fd.h"
#include "image/registry.h"

TEST(challenge)
{
	static const struct {
		const char *one, *two;
		enum challenge_scheme scheme;
		const char *realm, *service, *scope;
	} cases[] = {
		{ "Bearer realm=\"https://a/t\",service=\"r\",scope=\"repository:x:pull\"", NULL,
		  CHALLENGE_BEARER, "https://a/t", "r", "repository:x:pull" },
		{ "bearer  Realm = \"https://a/t\" , service=r", NULL, CHALLENGE_BEARER,
		  "https://a/t", "r", "" },
		{ "Basic realm=\"x\"", NULL, CHALLENGE_BASIC, "", "", "" },
		{ "Basic realm=\"x\", Bearer realm=\"https://a\"", NULL, CHALLENGE_BEARER,
		  "https://a", "", "" },
		{ "Bearer realm=\"https://a\", Basic realm=\"x\"", NULL, CHALLENGE_BEARER,
		  "https://a", "", "" },
		{ "Basic realm=\"x\"", "Bearer realm=\"https://a\"", CHALLENGE_BEARER, "https://a",
		  "", "" },
		{ "Bearer realm=\"a\\\"b, c\"", NULL, CHALLENGE_BEARER, "a\"b, c", "", "" },
		{ "Bearer realm=\"never ends", NULL, CHALLENGE_BEARER, "", "", "" },
		{ "Bearer", NULL, CHALLENGE_BEARER, "", "", "" },
		{ "Negotiate", NULL, CHALLENGE_NONE, "", "", "" },
		{ "", NULL, CHALLENGE_NONE, "", "", "" },
		{ "=", NULL, CHALLENGE_NONE, "", "", "" },
		{ "realm=\"x\"", NULL, CHALLENGE_NONE, "", "", "" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct challenge c = { 0 };

		challenge_parse(&c, cases[i].one);
		if (cases[i].two)
			challenge_parse(&c, cases[i].two);
		assert_int_equal(c.scheme, cases[i].scheme);
		assert_string_equal(c.realm, cases[i].realm);
		assert_string_equal(c.service, cases[i].service);
		assert_string_equal(c.scope, cases[i].scope);
	}
}

TEST(creds)
{
	static const struct {
		const char *text, *host;
		int r;
		const char *user, *password, *helper;
	} cases[] = {
		{ "{\"auths\":{\"r.io:5000\":{\"auth\":\"bWU6c2VjcmV0\"}}}", "r.io:5000", 0, "me",
		  "secret", "" },
		{ "{\"auths\":{\"r.io:5000\":{\"auth\":\"bWU6c2VjcmV0\"}}}", "r.io", 0, "", "",
		  "" },
		{ "{\"auths\":{\"https://r.io/v2/\":{\"auth\":\"bWU6YTpi\"}}}", "r.io", 0, "me",
		  "a:b", "" },
		{ "{\"auths\":{\"https://index.docker.io/v1/\":{\"auth\":\"bWU6c2VjcmV0\"}}}",
		  "docker.io", 0, "me", "secret", "" },
		{ "{\"auths\":{\"r.io\":{\"username\":\"a\",\"password\":\"b\"}}}", "r.io", 0, "a",
		  "b", "" },
		{ "{\"credHelpers\":{\"r.io\":\"pass\"}}", "r.io", 0, "", "", "pass" },
		{ "{\"auths\":{\"r.io\":{}},\"credsStore\":\"pass\"}", "r.io", 0, "", "", "pass" },
		{ "{\"credHelpers\":{\"r.io\":\"../evil\"}}", "r.io", -74, "", "", "" },
		{ "{\"auths\":{\"r.io\":{\"auth\":\"!!\"}}}", "r.io", -74, "", "", "" },
		{ "{\"auths\":{\"r.io\":{\"identitytoken\":\"x\"}}}", "r.io", -74, "", "", "" },
		{ "{\"auths\":{\"r.io\":{\"username\":\"a\\nb\",\"password\":\"b\"}}}", "r.io", -74,
		  "", "", "" },
		{ "{}", "r.io", 0, "", "", "" },
		{ "nonsense", "r.io", -74, "", "", "" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct creds c;
		struct err e = { 0 };
		int r = creds_parse(cases[i].text, strlen(cases[i].text), cases[i].host, &c, &e);

		if (r != cases[i].r)
			fail_msg("case %zu: %d %s", i, r, e.msg);
		if (r < 0)
			continue;
		assert_string_equal(c.user, cases[i].user);
		assert_string_equal(c.password, cases[i].password);
		assert_string_equal(c.helper, cases[i].helper);
	}
}

TEST(origins)
{
	struct registry far = { 0 }, near = { .http_ok = true };

	assert_true(registry_url_ok(&far, "https://a"));
	assert_false(registry_url_ok(&far, "http://a"));
	assert_true(registry_url_ok(&near, "http://a"));
	assert_false(registry_url_ok(&near, "file:///etc/passwd"));
	assert_false(registry_url_ok(&near, "gopher://a"));
}
