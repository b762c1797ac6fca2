/* SPDX-License-Identifier: Apache-2.0 */
/* base64.h - Read and write base64 (RFC 4648, padded, one line). */
#ifndef CAISSON_BASE_BASE64_H
#define CAISSON_BASE_BASE64_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

/*
 * base64_decode() - Append the bytes that @s encodes to @out. Return: false when @s is not the one
 * valid encoding of some bytes, or @out has no room; then nothing was added.
 */
bool base64_decode(const char *s, size_t len, struct buf *out);

/* base64_encode() - Append the text. Without room in @out nothing is added, and out->err is set. */
void base64_encode(const void *data, size_t len, struct buf *out);

#endif
