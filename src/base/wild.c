/* SPDX-License-Identifier: Apache-2.0 */
/* wild.c - Only the last of several stars is tried again: never exponential. */
#include "base/wild.h"

#include <string.h>

bool wild_match(const char *pattern, const char *text)
{
	const char *star = NULL, *again = NULL;

	while (*text) {
		if (*pattern == '*') {
			star = ++pattern;
			again = text;
		} else if (*pattern == '?' || *pattern == *text) {
			pattern++;
			text++;
		} else if (star) {
			pattern = star;
			text = ++again;
		} else {
			return false;
		}
	}
	return pattern[strspn(pattern, "*")] == '\0';
}
