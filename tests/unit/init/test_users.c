/* SPDX-License-Identifier: Apache-2.0 */
/* test_users.c - Which numbers an image's /etc/passwd and /etc/group have. */
#include <string.h>

#include "init/users.h"

#include "../unit.h"

static bool has(const char *text, unsigned int id)
{
	return users_has(text, strlen(text), id);
}

TEST(the_third_field_is_the_number)
{
	const char *users = "root:x:0:0:root:/root:/bin/sh\nnode:x:1000:1001::/home/node:/bin/sh\n";

	assert_true(has(users, 0) && has(users, 1000));
	assert_false(has(users, 1001) || has(users, 100) || has(users, 1));
	assert_true(has("a:x:7:", 7) && has("a:x:7", 7) && has("\n\na:x:7:\n", 7) && has("::7", 7));
	assert_true(has("a:x:0007:", 7));
}

TEST(what_is_no_number_is_none)
{
	assert_false(has("", 0) || has("\n\n", 0) || has("::", 0) || has(":::", 0) || has("0", 0));
	assert_false(has("a:0", 0) || has("a:x:x", 0) || has("a:x: 7:", 7) || has("a:x:7 :", 7));
	assert_false(has("#a:x:7:", 7) || has("a:x:-7:", 7) || has("a:x:+7:", 7));
	assert_false(has("a:x:4294967303:", 7) || has("a:x:18446744073709551623:", 7));
}

TEST(a_line_ends_where_the_text_does)
{
	assert_false(users_has("a:x:10", 5, 10) || users_has("a:x:10", 4, 1));
	assert_true(users_has("a:x:10", 5, 1));
	assert_false(users_has("a:\nx:7:1", 8, 7));
}
