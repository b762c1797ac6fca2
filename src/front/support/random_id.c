/* SPDX-License-Identifier: Apache-2.0 */
/* random_id.c - Identifiers from random bytes of the Linux kernel. */
#include "front/support/random_id.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

void random_id(char id[33])
{
	unsigned char raw[16];

	if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw))
		abort();
	for (size_t i = 0; i < sizeof(raw); i++)
		(void)snprintf(id + 2 * i, 3, "%02x", raw[i]);
}
