/* SPDX-License-Identifier: Apache-2.0 */
/*
 * utf8.h - Walk over bytes that claim to be UTF-8.
 *
 * Strict as RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF. NUL is a character
 * like any other. A byte that does not start a valid character counts as one character of its own,
 * so text of n characters never has more than 4 * n bytes.
 */
#ifndef CAISSON_BASE_UTF8_H
#define CAISSON_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* utf8_next() - Bytes (1 to 4) of the character at @s; 0 when invalid, cut off or @len is 0. */
size_t utf8_next(const char *s, size_t len);

/* utf8_valid() - Whether all @len bytes are valid UTF-8. */
bool utf8_valid(const char *s, size_t len);

/*
 * utf8_truncate() - Byte length of the first @max_chars characters of @s, without splitting one.
 * Return: @len when there are no more than @max_chars.
 */
size_t utf8_truncate(const char *s, size_t len, size_t max_chars);

/*
 * utf8_fit() - Byte length of as many whole characters of @s as fit in @max_bytes.
 * Return: @len when it is no more than that.
 */
size_t utf8_fit(const char *s, size_t len, size_t max_bytes);

#endif
