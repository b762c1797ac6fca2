/* SPDX-License-Identifier: Apache-2.0 */
/* wild.c - Only the last of several stars is tried again: never exponential. */
#include "base/wild.h"

#include <string.h>

bool wild_match_len(const char *pattern, size_t n, const char *text, size_t len)
{
	size_t i = 0, k = 0, star = n, from = 0;

	while (k < len) {
		if (i < n && pattern[i] == '*') {
			star = i++;
			from = k;
		} else if (i < n && (pattern[i] == '?' || pattern[i] == text[k])) {
			i++;
			k++;
		} else if (star < n) {
			i = star + 1;
			k = ++from;
		} else {
			return false;
		}
	}
	while (i < n && pattern[i] == '*')
		i++;
	return i == n;
}

bool wild_match(const char *pattern, const char *text)
{
	return wild_match_len(pattern, strlen(pattern), text, strlen(text));
}
