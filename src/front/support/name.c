/* SPDX-License-Identifier: Apache-2.0 */
/* name.c - Check names of sandboxes and workspaces. */
#include "front/support/name.h"

bool name_ok(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		bool alnum = (s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z') ||
			     (s[i] >= '0' && s[i] <= '9');

		if (!alnum && (i == 0 || (s[i] != '.' && s[i] != '_' && s[i] != '-')))
			return false;
	}
	return len > 0 && len <= NAME_LENGTH_MAX;
}
