/* SPDX-License-Identifier: Apache-2.0 */
/* refusal.h - Why something was not done, as every wire tells it. */
#ifndef CAISSON_FRONT_REFUSAL_H
#define CAISSON_FRONT_REFUSAL_H

struct buf;

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

/* error_json() - An error in its one shape, appended to @out. @field and @hint may be NULL. */
void error_json(struct buf *out, const char *code, const char *message, const char *field,
		const char *hint);
/* refusal_json() - The same of a refusal. */
void refusal_json(const struct refusal *r, struct buf *out);
/* error_unwritten() - The JSON text that stands for a result that could not be written. */
const char *error_unwritten(int err);

#endif
