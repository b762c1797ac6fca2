/* SPDX-License-Identifier: Apache-2.0 */
/* test_vault.c - Lines of secrets: valid ones, their owners, and their way between processes. */
#include <string.h>

#include "../unit.h"
#include "base/err.h"
#include "base/fd.h"
#include "vault/source.h"
#include "vault/vault.h"

static int add(struct vault *v, const char *text, struct err *e)
{
	return vault_add(v, text, strlen(text), e);
}

TEST(lines)
{
	struct vault v;
	const struct secret *s;

	assert_int_equal(vault_init(&v, false), 0);
	assert_int_equal(add(&v, "# c\n\nA=1=2:3@4\nalice,bob:B=x y\nB2@a.test,b.test=z\ncarol:B=w",
			     NULL),
			 0);
	assert_int_equal(v.n, 4);
	assert_string_equal(vault_find(&v, "A", "anybody")->value, "1=2:3@4");
	assert_string_equal(vault_find(&v, "B", "bob")->value, "x y");
	assert_string_equal(vault_find(&v, "B", "carol")->value, "w");
	assert_null(vault_find(&v, "B", "dave"));
	assert_null(vault_find(&v, "B", "ali"));
	s = vault_find(&v, "B2", "x");
	assert_true(vault_lists(s->hosts, "b.test") && !vault_lists(s->hosts, "test"));
	assert_null(s->headers);
	assert_true(vault_header(s, "authorization") && vault_header(s, "x-api-key"));
	assert_false(vault_header(s, "user-agent") || vault_header(s, "cookie"));
	assert_int_equal(add(&v, "C[X-Mine]=[1]=2\nD@a.test[cookie,X_Y]=z\n", NULL), 0);
	assert_string_equal(vault_find(&v, "C", NULL)->value, "[1]=2");
	s = vault_find(&v, "D", NULL);
	assert_string_equal(s->hosts, "a.test");
	assert_true(vault_header(s, "x_y") && vault_header(s, "cookie"));
	assert_false(vault_header(s, "authorization"));
	vault_free(&v);
	vault_free(&v);
}

TEST(wrong_lines)
{
	static const struct {
		const char *text, *says;
	} t[] = {
		{ "A", "line 1: no '='" },
		{ "\n=x", "line 2: the name" },
		{ "1A=x", "the name" },
		{ "A-B=x", "the name" },
		{ "A=", "A has no value" },
		{ "A@h.test=", "A has no value" },
		{ "A=\"x\"", "quotes" },
		{ "A=x ", "space" },
		{ "A=a\tb", "control" },
		{ "A=\xff", "UTF-8" },
		{ "A@=x", "hosts" },
		{ "A[]=x", "request headers" },
		{ "A[Host]=x", "request headers" },
		{ "A@h.test[X-A,Proxy-Authorization]=x", "request headers" },
		{ "A[X-A]@h.test=x", "the name" },
		{ "A[X A]=x", "request headers" },
		{ "A@h..test=x", "hosts" },
		{ "A@H.test=x", "lower case" },
		{ ":A=x", "owners" },
		{ "a,,b:A=x", "owners" },
		{ "A=x\nA=y", "line 2: A occurs twice" },
		{ "A=x\nbob:A=y", "twice" },
		{ "al,bob:A=x\nbob,eve:A=y", "twice" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		struct err e = { 0 };
		struct vault v;

		assert_int_equal(vault_init(&v, false), 0);
		assert_true(add(&v, t[i].text, &e) < 0);
		if (!strstr(e.msg, t[i].says))
			fail_msg("%s: %s", t[i].text, e.msg);
		vault_free(&v);
	}
}

TEST(sealed)
{
	struct vault v, whole, blind;

	assert_int_equal(vault_init(&v, false), 0);
	assert_int_equal(vault_init(&whole, false), 0);
	assert_int_equal(vault_init(&blind, true), 0);
	assert_int_equal(add(&v, "A=1\nbob:T@h.test=2\n", NULL), 0);
	_fd_ int one = vault_seal(&v, false), two = vault_seal(&v, true);

	assert_int_equal(vault_unseal(&whole, one, NULL), 0);
	assert_int_equal(vault_unseal(&blind, two, NULL), 0);
	assert_string_equal(vault_find(&whole, "T", "bob")->value, "2");
	assert_string_equal(vault_find(&blind, "T", "bob")->value, "");
	assert_string_equal(vault_find(&blind, "T", "bob")->hosts, "h.test");
	assert_string_equal(vault_find(&blind, "A", "bob")->value, "1");
	assert_true(vault_unseal(&whole, two, NULL) < 0); /* a reader of all values refuses */
	vault_free(&v);
	vault_free(&whole);
	vault_free(&blind);
}

TEST(prefixes)
{
	char *env[] = { "X=1", "S_A=2", "Y=3", "S_B=4", NULL };
	struct err e = { 0 };
	struct vault v;

	assert_null(source_prefix_problem("CAISSON_SECRET_"));
	assert_non_null(source_prefix_problem("CAISSON_SECRETS_"));
	assert_non_null(source_prefix_problem("CAISSON_"));
	assert_non_null(source_prefix_problem("S"));
	assert_non_null(source_prefix_problem(""));
	_fd_ int fd = source_hide("S_", env, "", &e);

	assert_true(fd >= 0);
	assert_string_equal(env[0], "X=1");
	assert_string_equal(env[1], "Y=3");
	assert_null(env[2]);
	assert_int_equal(vault_init(&v, false), 0);
	assert_int_equal(vault_unseal(&v, fd, &e), 0);
	assert_string_equal(vault_find(&v, "B", "x")->value, "4");
	vault_free(&v);
	assert_int_equal(source_hide("S_", env, "", &e), -1);
	assert_int_equal(e.code, 0);
}
