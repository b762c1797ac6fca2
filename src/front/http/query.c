/* SPDX-License-Identifier: Apache-2.0 */
/* query.c - The names in a query string. */
#include "front/http/query.h"

#include <string.h>

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool query_name_next(const char **at, char name[QUERY_NAME_MAX])
{
	const char *s = *at + strspn(*at, "&");
	size_t n = 0;

	if (!*s) {
		*at = s;
		return false;
	}
	for (; *s && *s != '=' && *s != '&'; s++) {
		char c = *s == '+' ? ' ' : *s;

		if (c == '%' && hex(s[1]) >= 0 && hex(s[2]) >= 0) {
			c = (char)(hex(s[1]) << 4 | hex(s[2]));
			s += 2;
		}
		if (n < QUERY_NAME_MAX - 1)
			name[n++] = c ? c : '?';
	}
	name[n] = '\0';
	*at = s + strcspn(s, "&");
	return true;
}
