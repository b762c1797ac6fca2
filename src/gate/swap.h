/* SPDX-License-Identifier: Apache-2.0 */
/*
 * swap.h - Placeholders for values, in the value of one header. Pure.
 *
 * Also inside the base64 of `Basic` credentials, which is how git and pip send what is in a URL.
 * What the result would be with a control byte in it can not come to be: no value has one
 * (vault/vault.h).
 */
#ifndef CAISSON_GATE_SWAP_H
#define CAISSON_GATE_SWAP_H

#include <stddef.h>

struct buf;

struct secret;

struct swap {
	const char *from, *to;       /* from is not empty */
	const struct secret *secret; /* whose value that is; NULL: not known, or nobody's */
};

/*
 * swap_header() - Append @value to @out with each from replaced by its to. What was put in is not
 * looked at again.
 * @used: may be NULL; used[i] is set to 1 when pair i was needed. Return: how many were, or the
 * error of @out.
 */
int swap_header(const char *value, const struct swap *pairs, size_t n, unsigned char *used,
		struct buf *out);

#endif
