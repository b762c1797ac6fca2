/* SPDX-License-Identifier: Apache-2.0 */
/* tail.h - The last bytes of something that goes on for ever, to be read by lines. */
#ifndef CAISSON_FRONT_TAIL_H
#define CAISSON_FRONT_TAIL_H

#include <stddef.h>
#include <stdint.h>

struct buf;

#define TAIL_MAX 65536u

/* Zero is empty; memory is taken with the first byte. */
struct tail {
	char *data;     /* TAIL_MAX of them, a ring */
	size_t at;      /* where the next byte goes */
	size_t kept;    /* how many there are */
	uint64_t bytes; /* all that ever went through */
};

void tail_add(struct tail *t, const char *data, size_t len);
void tail_free(struct tail *t); /* idempotent */

/* tail_read() - Append the last @lines lines; what is older than TAIL_MAX bytes is not there. */
void tail_read(const struct tail *t, size_t lines, struct buf *out);

#endif
