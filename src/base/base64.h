/* SPDX-License-Identifier: Apache-2.0 */
/* base64.h - Read base64 (RFC 4648, padded, one line). Writing it is json_base64()'s. */
#ifndef CAISSON_BASE_BASE64_H
#define CAISSON_BASE_BASE64_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

/*
 * base64_decode() - Append what @s means to @out. Return: false when it is not the one form in
 * which some bytes are written, or @out has no room; then nothing was added.
 */
bool base64_decode(const char *s, size_t len, struct buf *out);

#endif
