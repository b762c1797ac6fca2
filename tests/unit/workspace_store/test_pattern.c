/* SPDX-License-Identifier: Apache-2.0 */
/* test_pattern.c - Which paths a pattern means, and which are seen. */
#include <errno.h>
#include <string.h>

#include "../unit.h"
#include "base/err.h"
#include "base/fd.h"
#include "workspace_store/pattern.h"

TEST(match)
{
	static const struct {
		const char *pattern, *path;
		bool yes;
	} rows[] = {
		{ "a", "a", true },
		{ "a", "b/a", true },
		{ "a", "a/b", true },
		{ "a", "ab", false },
		{ "/a", "a", true },
		{ "/a", "a/b", true },
		{ "/a", "b/a", false },
		{ "a/", "a/b", true },
		{ "a/b", "a/b", true },
		{ "a/b", "x/a/b", false },
		{ "a/b", "a/b/c", true },
		{ "a/b", "a", false },
		{ "*.pem", "key.pem", true },
		{ "*.pem", "x/y/key.pem", true },
		{ "*.pem", "key.pem.txt", false },
		{ "*.pem", "dir.pem/inside", true },
		{ "a/*/c", "a/b/c", true },
		{ "a/*/c", "a/b/d/c", false },
		{ "a/**/c", "a/b/d/c", true },
		{ "a/**/c", "a/c", true },
		{ "**/c", "c", true },
		{ "**/c", "a/b/c", true },
		{ "src/**", "src/x", true },
		{ "src/**", "src", false },
		{ "**", "anything/at/all", true },
		{ "?", "a", true },
		{ "?", "ab", false },
		{ "*a*b*c*", "xxaxxbxxcxx", true },
		{ "*a*b*c*", "xxaxxcxxbxx", false },
		{ "a/*b", "a/b", true },
		{ "**/a/**/b", "x/a/y/a/z/b", true },
		{ ".*", ".git/config", true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (pattern_match(rows[i].pattern, rows[i].path) != rows[i].yes)
			fail_msg("%s and %s", rows[i].pattern, rows[i].path);
}

TEST(ok)
{
	static const char *const bad[] = { "", "/", ".", "..", "a/../b", "a/./b", "a\nb", "\x7f" };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(pattern_ok(bad[i], strlen(bad[i])));
	assert_true(pattern_ok("a b/*.c", 7));
	assert_true(pattern_ok("...", 3));
}

TEST(visible)
{
	static const char text[] = "+src/**\n+README\n-*.pem\n-/src/private\n";
	static struct pattern_rules r;
	struct err e;

	assert_int_equal(pattern_parse(text, strlen(text), &r, &e), 0);
	assert_int_equal(r.n, 4);
	assert_true(pattern_visible(&r, "src/main.c"));
	assert_true(pattern_visible(&r, "README"));
	assert_false(pattern_visible(&r, "other"));
	assert_false(pattern_visible(&r, "src/a/key.pem"));
	assert_false(pattern_visible(&r, "src/private/x"));
	assert_true(pattern_visible(&r, "src/a/private/x"));
	assert_int_equal(pattern_parse("-x", 2, &r, &e), 0);
	assert_true(pattern_visible(&r, "y"));
	assert_false(pattern_visible(&r, "a/x/b"));
	assert_int_equal(pattern_parse("x\n", 2, &r, &e), -EINVAL);
	assert_int_equal(pattern_parse("-\n", 2, &r, &e), -EINVAL);
	assert_int_equal(pattern_parse("-../x\n", 6, &r, &e), -EINVAL);
}
