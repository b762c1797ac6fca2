/* SPDX-License-Identifier: Apache-2.0 */
/* json_quote.h - Bytes as a JSON string. For json.c. */
#ifndef CAISSON_BASE_JSON_QUOTE_H
#define CAISSON_BASE_JSON_QUOTE_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

/*
 * json_quote() - Append @s in quotes. Each byte that is not part of a valid character becomes
 * U+FFFD; control characters, DEL and U+0080 to U+009F among them, are escaped. Return: whether a
 * byte was replaced.
 */
bool json_quote(struct buf *out, const char *s, size_t len);

#endif
