/* SPDX-License-Identifier: Apache-2.0 */
/*
 * placeholder.h - Replace placeholders by values of secrets in one header, and values by
 * placeholders. Pure.
 *
 * Also inside the base64 of `Basic` credentials: git and pip send the credentials of a URL in this
 * form. The result has no control bytes, because values have none (vault/vault.h).
 */
#ifndef CAISSON_GATE_PLACEHOLDER_H
#define CAISSON_GATE_PLACEHOLDER_H

#include <stddef.h>

struct buf;
struct secret;

struct replacement {
	const char *from, *to;       /* from is not empty */
	const struct secret *secret; /* whose value @to is; NULL: unknown, or none */
};

/*
 * placeholder_replace() - Append @value to @out with each from replaced by its to. Replaced text is
 * not searched again.
 * @used: may be NULL; used[i] is set to 1 when pair i was found. Return: the number of
 * replacements, or the error of @out.
 */
int placeholder_replace(const char *value, const struct replacement *pairs, size_t n,
			unsigned char *used, struct buf *out);

#endif
