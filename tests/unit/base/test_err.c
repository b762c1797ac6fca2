/* SPDX-License-Identifier: Apache-2.0 */
/* test_err.c - The error struct: messages, wrapping, truncation, NULL. */
#include "base/err.h"

#include <errno.h>
#include <string.h>

#include "../unit.h"

TEST(set_appends_strerror)
{
	struct err e = { 0 };

	assert_int_equal(err_set(&e, -ENOENT, "open '%s'", "x"), -ENOENT);
	assert_int_equal(e.code, -ENOENT);
	assert_string_equal(e.msg, "open 'x': No such file or directory");
}

TEST(say_stands_alone)
{
	struct err e = { 0 };

	assert_int_equal(err_say(&e, -EINVAL, "no such flag %d", 7), -EINVAL);
	assert_int_equal(e.code, -EINVAL);
	assert_string_equal(e.msg, "no such flag 7");
}

TEST(wrap_puts_context_before)
{
	struct err e = { 0 };

	(void)err_say(&e, -EPERM, "inner");
	assert_int_equal(err_wrap(&e, "start cell %d", 3), -EPERM);
	assert_int_equal(err_wrap(&e, "run"), -EPERM);
	assert_string_equal(e.msg, "run: start cell 3: inner");
}

TEST(null_drops_the_message)
{
	assert_int_equal(err_set(NULL, -EIO, "x"), -EIO);
	assert_int_equal(err_say(NULL, -EIO, "x"), -EIO);
	assert_true(err_wrap(NULL, "x") < 0);
}

/* A callee that failed without filling the error must not be turned into success. */
TEST(wrap_of_nothing_is_still_a_failure)
{
	struct err e = { 0 };

	assert_true(err_wrap(&e, "read the state") < 0);
	assert_true(e.code < 0);
	assert_non_null(strstr(e.msg, "read the state"));
}

TEST(format_characters_in_arguments)
{
	struct err e = { 0 };

	(void)err_say(&e, -EINVAL, "%s", "%s%n%d");
	(void)err_wrap(&e, "%s", "%n");
	assert_string_equal(e.msg, "%n: %s%n%d");
}

/* Every length around the size of the message: always terminated, never past the end. */
TEST(truncation)
{
	struct {
		struct err e;
		char guard[64];
	} box;
	char text[2 * sizeof(box.e.msg)];

	for (size_t len = 0; len < sizeof(text); len++) {
		memset(text, 'a', len);
		text[len] = '\0';
		memset(&box, 0x5a, sizeof(box));

		(void)err_set(&box.e, -EINVAL, "%s", text);
		assert_non_null(memchr(box.e.msg, '\0', sizeof(box.e.msg)));
		if (len < sizeof(box.e.msg))
			assert_memory_equal(box.e.msg, text, len);
		(void)err_wrap(&box.e, "%s", text);
		assert_non_null(memchr(box.e.msg, '\0', sizeof(box.e.msg)));
		(void)err_say(&box.e, -EINVAL, "%s", text);
		assert_int_equal(strlen(box.e.msg),
				 len < sizeof(box.e.msg) ? len : sizeof(box.e.msg) - 1);
		for (size_t i = 0; i < sizeof(box.guard); i++)
			assert_int_equal(box.guard[i], 0x5a);
	}
}
