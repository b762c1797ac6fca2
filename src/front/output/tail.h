/* SPDX-License-Identifier: Apache-2.0 */
/* tail.h - Keeps the last bytes of an endless stream, to be read by lines. */
#ifndef CAISSON_FRONT_TAIL_H
#define CAISSON_FRONT_TAIL_H

#include <stddef.h>
#include <stdint.h>

struct buf;

#define TAIL_MAX 65536u

/* All zero: empty. The memory is allocated with the first byte. */
struct tail {
	char *data;     /* a ring of TAIL_MAX bytes */
	size_t at;      /* where the next byte goes */
	size_t kept;    /* number of bytes in the ring */
	uint64_t bytes; /* added in all */
};

/* tail_add() - Add bytes. Without memory they are only counted. */
void tail_add(struct tail *t, const char *data, size_t len);
void tail_free(struct tail *t); /* idempotent */

/* tail_read() - Append the last @lines lines to @out. Bytes before the last TAIL_MAX are gone. */
void tail_read(const struct tail *t, size_t lines, struct buf *out);

#endif
