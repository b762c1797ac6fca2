/* SPDX-License-Identifier: Apache-2.0 */
/* test_inspect.c - The pure parts of reading HTTP: placeholders, bindings, rules for requests,
 * certificates. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "../unit.h"
#include "base/buf.h"
#include "gate/bindings.h"
#include "gate/http_rule.h"
#include "vault/vault.h"

#define P "caisson-secret-00112233445566778899aabbccddeeff"

static void assert_replaced(const char *value, int hits, const char *expected)
{
	static const struct replacement pairs[] = { { P, "s3cret", NULL }, { "other", P, NULL } };
	_buf_ struct buf b = BUF_INIT(4096);

	assert_int_equal(placeholder_replace(value, pairs, 2, NULL, &b), hits);
	assert_string_equal(buf_str(&b), expected);
}

TEST(replace)
{
	assert_replaced("Bearer " P, 1, "Bearer s3cret");
	assert_replaced(P P ";x", 2, "s3crets3cret;x");
	assert_replaced("caisson-secret-0011", 0, "caisson-secret-0011");
	assert_replaced("", 0, "");
	/* Replaced text is not searched again. */
	assert_replaced("other", 1, P);
	/* git:P */
	assert_replaced(
		"Basic Z2l0OmNhaXNzb24tc2VjcmV0LTAwMTEyMjMzNDQ1NTY2Nzc4ODk5YWFiYmNjZGRlZWZm", 1,
		"Basic Z2l0OnMzY3JldA==");
	assert_replaced(
		"basic  Z2l0OmNhaXNzb24tc2VjcmV0LTAwMTEyMjMzNDQ1NTY2Nzc4ODk5YWFiYmNjZGRlZWZm", 1,
		"basic  Z2l0OnMzY3JldA==");
	assert_replaced("Basic Z2l0OnB3", 0, "Basic Z2l0OnB3");
	assert_replaced("Basic " P, 1, "Basic s3cret");
	assert_replaced("Basic ====", 0, "Basic ====");
}

/* Placeholders that are almost there, in many bytes, cost about as much as one look at each byte.
 */
TEST(replace_is_cheap)
{
	static char names[60][64], values[60][64], text[55001];
	struct replacement pairs[60], back[60];
	clock_t began = clock();

	for (int k = 0; k < 60; k++) {
		(void)snprintf(names[k], sizeof(names[k]), "caisson-secret-%032d", k);
		(void)snprintf(values[k], sizeof(values[k]), "%c-value-%d", 'a' + k % 26, k);
		pairs[k] = (struct replacement){ names[k], values[k], NULL };
		back[k] = (struct replacement){ values[k], names[k], NULL };
	}
	for (size_t at = 0; at < sizeof(text) - 1; at++)
		text[at] = "caisson-secret-"[at % 15];
	for (int round = 0; round < 300; round++) {
		_buf_ struct buf b = BUF_INIT(1u << 17);

		memset(text, 'c', round % 2 ? sizeof(text) - 1 : 0);
		assert_int_equal(placeholder_replace(text, pairs, 60, NULL, &b), 0);
		assert_string_equal(buf_str(&b), text);
	}
	assert_true((double)(clock() - began) / CLOCKS_PER_SEC < 1.0);
	/* The same pairs do work, also when they share no prefix. */
	unsigned char used[60] = { 0 };
	_buf_ struct buf b = BUF_INIT(4096), c = BUF_INIT(4096);

	assert_int_equal(placeholder_replace(
				 "caisson-secret-caisson-secret-00000000000000000000000000000059;x",
				 pairs, 60, used, &b),
			 1);
	assert_string_equal(buf_str(&b), "caisson-secret-h-value-59;x");
	assert_true(used[59] && !used[5]);
	assert_int_equal(placeholder_replace("a-value a-value-26", back, 60, NULL, &c), 1);
	assert_string_equal(buf_str(&c), "a-value caisson-secret-00000000000000000000000000000026");
}

TEST(binds)
{
	static const char text[] = "K=one\nT@a.test=two\nalice:K2=three\n";
	struct gate_bind list[] = {
		{ .host = "a.test", .name = "K", .owner = "bob", .placeholder = "p1" },
		{ .host = "a.test", .name = "T", .owner = "bob", .placeholder = "p2" },
		{ .host = "b.test", .name = "K", .owner = "bob", .placeholder = "p1" },
	};
	struct replacement pairs[GATE_BINDS_MAX], stray[GATE_BINDS_MAX];
	struct bindings b = { 0 };
	struct vault v;
	size_t n_stray;

	assert_int_equal(vault_init(&v, false), 0);
	assert_int_equal(vault_add(&v, text, strlen(text), NULL), 0);
	assert_int_equal(bindings_set(&b, &v, list, 3), 0);
	assert_true(bindings_has(&b, "a.test") && bindings_has(&b, "b.test") &&
		    !bindings_has(&b, "c.test"));
	assert_int_equal(bindings_replacements(&b, &v, "a.test", pairs, stray, &n_stray), 2);
	assert_string_equal(pairs[1].to, "two");
	assert_int_equal(n_stray, 0);
	assert_int_equal(bindings_replacements(&b, &v, "b.test", pairs, stray, &n_stray), 1);
	assert_int_equal(n_stray, 1);
	assert_string_equal(bindings_name(&b, stray[0].from), "T");
	assert_int_equal(bindings_replacements(&b, &v, "", pairs, stray, &n_stray), 0);
	assert_int_equal(n_stray, 2);

	assert_true(bindings_value(&b, &v, "p2", "a.test") &&
		    !bindings_value(&b, &v, "p2", "b.test"));
	assert_false(bindings_value(&b, &v, "p3", "a.test"));

	/* A front that was taken over asks for more than the operator allows. */
	struct gate_bind bad = {
		.host = "b.test",
		.name = "T",
		.owner = "bob",
		.placeholder = "p",
	};

	assert_int_equal(bindings_set(&b, &v, &bad, 1), -22);
	bad = (struct gate_bind){
		.host = "b.test", .name = "K2", .owner = "bob", .placeholder = "p"
	};
	assert_int_equal(bindings_set(&b, &v, &bad, 1), -22);
	memset(bad.placeholder, 'x', sizeof(bad.placeholder));
	memcpy(bad.name, "K", 2);
	assert_int_equal(bindings_set(&b, &v, &bad, 1), -22);
	assert_int_equal(b.n, 3);
	bindings_free(&b);
	vault_free(&v);
}

TEST(paths)
{
	static const struct {
		const char *pattern, *path;
		bool yes;
	} t[] = {
		{ "/v1/*", "/v1/", true },        { "/v1/*", "/v1/a/b", true },
		{ "/v1/*", "/v1", false },        { "/*/x", "/a/x", true },
		{ "/*/x", "/a/b/x", false },      { "/a*c/d", "/abbc/d", true },
		{ "/a*c/d", "/ab/c/d", false },   { "/a*bc", "/abbbc", true },
		{ "/*b*c/*", "/abxc/y/z", true }, { "/x", "/x", true },
		{ "/x", "/xy", false },           { "*", "/anything", true },
		{ "/*/", "/a", false },           { "/a/**", "/a/b/c", true },
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		if (http_path_matches(t[i].pattern, t[i].path) != t[i].yes)
			fail_msg("%s on %s", t[i].pattern, t[i].path);
}

TEST(rules)
{
	static const struct gate_rule rules[] = {
		{ .host = "a.test", .port = 443, .methods = "GET,HEAD", .path = "/v1/*" },
		{ .host = "b.test", .port = 443, .methods = "GET" },
		{ .host = "b.test", .port = 443 },
		{ .host = "w.test", .port = 443, .flags = GATE_WILD, .path = "/ok" },
	};
	_buf_ struct buf why = BUF_INIT(4096);

	assert_true(http_ruled(rules, 4, "a.test", 443));
	assert_false(http_ruled(rules, 4, "a.test", 80));
	assert_false(http_ruled(rules, 4, "b.test", 443)); /* one of them lets everything through */
	assert_true(http_ruled(rules, 4, "x.w.test", 443));
	assert_false(http_ruled(rules, 4, "w.test", 443));
	assert_int_equal(http_judge(rules, 4, "a.test", 443, "GET", "/v1/x", &why), 0);
	assert_int_equal(http_judge(rules, 4, "a.test", 443, "HEAD", "/v1/x", &why), 0);
	assert_int_equal(http_judge(rules, 4, "a.test", 443, "POST", "/v1/x", &why), 403);
	assert_non_null(strstr(buf_str(&why), "GET,HEAD a.test/v1/*"));
	assert_int_equal(http_judge(rules, 4, "a.test", 443, "GET", "/v1/..%2fx", &why), 403);
	assert_int_equal(http_judge(rules, 4, "a.test", 443, "GET", "*", &why), 403);
	assert_int_equal(http_judge(rules, 4, "b.test", 443, "TRACE", "/", &why), 403);
	assert_int_equal(http_judge(rules, 4, "x.w.test", 443, "DELETE", "/ok", &why), 0);
}

/* Paths that a rule for /v1/... must not let through: each is read as another one by some server.
 */
TEST(readings)
{
	static const struct gate_rule rules[] = {
		{ .host = "a.test", .port = 443, .path = "/v1/*" },
		{ .host = "b.test", .port = 443, .path = "/v1/x*y/send" },
	};
	static const char *const refused[] = {
		"/v1/..;/admin",
		"/v1/.;/x",
		"/v1/..;a=b/admin",
		"/v1/..%3b/admin",
		"/v1/;/admin",
		"/v1/;x/admin",
		"/v1/%2e%2e;/admin",
		"/v1/%252e%252e/admin",
		"/v1/%252e%252e%252fadmin",
		"/v1/..%252fadmin",
		"/v1/%25252e%25252e/admin",
		"/v1/x%255cadmin",
		"/v1/x%253b/admin",
		"/v1/%25%32%65%25%32%65/admin",
		"/v1/%2%35%65",
		"/v1/%u002e%u002e/admin",
		"/v1/%25u002e%25u002e/admin",
		"/v1/..\\admin",
		"/v1/..%5cadmin",
		"/v1/..%2fadmin",
		"/v1/%c0%ae%c0%ae/admin",
		"/v1/%e0%80%ae/admin",
		"/v1/%25c0%25ae/admin",
		"/v1/x%00",
		"/v1/x%0a",
		"/v1/x%0d%0aX:%20y",
		"/v1/.%09./admin",
		"/v1/x%7f",
		"/v1/x%c2%85",
		"/v1/.../admin",
		"/v1/..%20/admin",
		"/v1/.%20./admin",
		"/v1/..",
		"/v1//x",
		"/v1/%ef%bc%8e%ef%bc%8e/admin", /* full-width dots */
		"/v1/%ef%bc%8fx",               /* and a slash */
		"/v1/%e2%80%a5/admin",          /* two dot leader */
		"/v1/%e2%88%95x",               /* division slash */
		"/v1/%25e2%2580%25a5/admin",
		"/v1%3f/../x",
		"v1/x",
		"*",
		"",
	};
	static const char *const good[] = {
		"/v1/",          "/v1/a%20b",         "/v1/100%25",    "/v1/100%25%20",
		"/v1/50%25-off", "/v1/my%2520file",   "/v1/caf%C3%A9", "/v1/a;b=c/d",
		"/v1/C%23",      "/v1/what%3f",       "/v1/.well/x",   "/v1/..x/y",
		"/v1/x..y",      "/v1/a+b,c:d@e!f=g", "/v1/%25%20zz",  "/v1/x.",
		"/v1/a.b/",      "/v1/~user",         "/%761/models",  "/v1/%F0%9F%98%80",
	};
	_buf_ struct buf why = BUF_INIT(4096);

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		if (http_judge(rules, 2, "a.test", 443, "GET", refused[i], &why) != 403)
			fail_msg("%s", refused[i]);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (http_judge(rules, 2, "a.test", 443, "GET", good[i], &why) != 0)
			fail_msg("%s: %s", good[i], buf_str(&why));
	/* The part that is dropped or cut off must not be the one that the rule asked for. */
	assert_int_equal(http_judge(rules, 2, "b.test", 443, "GET", "/v1/x1y/send", &why), 0);
	assert_int_equal(http_judge(rules, 2, "b.test", 443, "GET", "/v1/xq;y/send", &why), 403);
	assert_int_equal(http_judge(rules, 2, "b.test", 443, "GET", "/v1/x%3fy/send", &why), 403);
	assert_non_null(strstr(buf_str(&why), "GET /v1/x is not allowed"));
	assert_int_equal(http_judge(rules, 2, "b.test", 443, "GET", "/v1/x;%3fy/send", &why), 403);
	assert_int_equal(http_judge(rules, 2, "b.test", 443, "GET", "/v1/x%2579/send", &why), 403);
}

TEST(authority)
{
	struct ca *one, *two;
	_buf_ struct buf a = BUF_INIT(16384), b = BUF_INIT(16384);
	char host[32];

	assert_int_equal(ca_new(&one), 0);
	assert_int_equal(ca_new(&two), 0);
	assert_int_equal(ca_pem(one, &a), 0);
	assert_int_equal(ca_pem(two, &b), 0);
	assert_string_not_equal(buf_str(&a), buf_str(&b));
	assert_null(strstr(buf_str(&a), "PRIVATE"));
	assert_ptr_equal(ca_server(one, "a.test"), ca_server(one, "a.test"));
	for (int i = 0; i < 200; i++) { /* more than it keeps */
		(void)snprintf(host, sizeof(host), "h%d.test", i);
		assert_non_null(ca_server(one, host));
	}
	ca_free(one);
	ca_free(two);
	ca_free(NULL);
}
