/* SPDX-License-Identifier: Apache-2.0 */
/* test_wild.c - Texts that patterns match, and texts that they do not match. */
#include "base/wild.h"

#include "base/fd.h"

#include "../unit.h"

static const struct {
	const char *pattern, *text;
	bool matches;
} rows[] = {
	{ "*", "", true },
	{ "*", "x", true },
	{ "", "", true },
	{ "", "x", false },
	{ "numpy", "numpy", true },
	{ "numpy", "numpyx", false },
	{ "get_*", "get_weather", true },
	{ "get_*", "forget_weather", false },
	{ "*_file", "read_text_file", true },
	{ "*_file", "read_file_x", false },
	{ "*a", "b", false },
	{ "a*b*c", "aXbXbXc", true },
	{ "a*b*c", "aXbXbX", false },
	{ "@a/*b*", "@a/xbbx", true },
	{ "r??d", "read", true },
	{ "r?d", "read", false },
	{ "?", "", false },
	{ "Read", "read", false },
	{ "a**", "a", true },
	{ "[ab]", "a", false },
};

TEST(match)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (wild_match(rows[i].pattern, rows[i].text) != rows[i].matches)
			fail_msg("'%s' and '%s'", rows[i].pattern, rows[i].text);
}
