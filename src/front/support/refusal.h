/* SPDX-License-Identifier: Apache-2.0 */
/* refusal.h - Why something was not done, as every wire tells it. */
#ifndef CAISSON_FRONT_REFUSAL_H
#define CAISSON_FRONT_REFUSAL_H

struct refusal {
	int status; /* HTTP */
	const char *code;
	const char *field, *hint;
	unsigned int retry_after_s;
	char message[320];
};

/* refusal_no_memory() - What the daemon lacks is not the client's mistake. Return: -1. */
static inline int refusal_no_memory(struct refusal *r)
{
	*r = (struct refusal){ .status = 503,
			       .code = "out_of_memory",
			       .retry_after_s = 1,
			       .message = "the daemon is out of memory" };
	return -1;
}

#endif
