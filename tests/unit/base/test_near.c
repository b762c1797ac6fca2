/* SPDX-License-Identifier: Apache-2.0 */
/* test_near.c - Which word is offered for a wrong one, and when none is. */
#include <string.h>

#include "../unit.h"
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

TEST(found)
{
	assert_string_equal(of("--language"), "--lang");
	assert_string_equal(of("--mem"), "--memory");
	assert_string_equal(of("--memroy"), "--memory");
	assert_string_equal(of("--timout"), "--timeout");
	assert_string_equal(of("rnu"), "run");
	assert_string_equal(of("creates"), "create");
	assert_string_equal(of("pss"), "ps");
	assert_string_equal(of("exce"), "exec");
}

TEST(none)
{
	assert_string_equal(of(""), "");
	assert_string_equal(of("x"), "");
	assert_string_equal(of("zz"), "");
	assert_string_equal(of("ruby"), ""); /* a word of its own */
	assert_string_equal(of("exit"), "");
	assert_string_equal(of("--gpu-count"), "");
	assert_string_equal(of("--a-very-long-word-that-nobody-has-ever-meant"), "");
}

TEST(hint)
{
	struct near n = near_word("--langs=x", 7);

	assert_string_equal(near_hint(&n), ";");
	near_try(&n, "--lang");
	assert_string_equal(near_hint(&n), ": did you mean '--lang'?");
}
