/* SPDX-License-Identifier: Apache-2.0 */
/* name.c - Check names, and make identifiers from random bytes of the Linux kernel. */
#include "front/support/name.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

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

void random_id(char id[33])
{
	unsigned char raw[16];

	if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw))
		abort();
	for (size_t i = 0; i < sizeof(raw); i++)
		(void)snprintf(id + 2 * i, 3, "%02x", raw[i]);
}
