/* SPDX-License-Identifier: Apache-2.0 */
/* test_near.c - Which word is offered for a wrong one, and when none is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/near.h"

static const char *of(const char *word)
{
	static const char *const names[] = { "--lang",   "--memory", "--timeout", "--env",
					     "--egress", "run",      "exec",      "ps",
					     "create",   NULL };
	struct near n = near_word(word, strlen(word));

	for (size_t i = 0; names[i]; i++)
		near_try(&n, names[i]);
	near_try(&n, NULL);
	return n.found ? n.found : "";
}

static void test_found(void **state)
{
	(void)state;
	assert_string_equal(of("--language"), "--lang");
	assert_string_equal(of("--mem"), "--memory");
	assert_string_equal(of("--memroy"), "--memory");
	assert_string_equal(of("--timout"), "--timeout");
	assert_string_equal(of("rnu"), "run");
	assert_string_equal(of("creates"), "create");
	assert_string_equal(of("pss"), "ps");
}

static void test_none(void **state)
{
	(void)state;
	assert_string_equal(of(""), "");
	assert_string_equal(of("x"), "");
	assert_string_equal(of("zz"), "");
	assert_string_equal(of("--gpu-count"), "");
	assert_string_equal(of("--a-very-long-word-that-nobody-has-ever-meant"), "");
}

static void test_hint(void **state)
{
	struct near n = near_word("--langs=x", 7);

	(void)state;
	assert_string_equal(near_hint(&n), ";");
	near_try(&n, "--lang");
	assert_string_equal(near_hint(&n), ": did you mean '--lang'?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_found),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_hint),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
