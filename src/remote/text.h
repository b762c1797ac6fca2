/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.h - Untrusted text, made safe for a terminal.
 *
 * Text of a daemon or a sandbox may hold bytes that move the cursor, change the title or turn the
 * direction of writing. Everything in tables and messages goes through here. The output of programs
 * does not: it is passed on byte for byte.
 */
#ifndef CAISSON_REMOTE_TEXT_H
#define CAISSON_REMOTE_TEXT_H

#include <stddef.h>
#include <stdio.h>

struct buf;

/*
 * text_escape() - Append with every control character as \n, \t, \xNN or \u{NNNN}; also bytes that
 * are not UTF-8, and characters that turn or hide text.
 */
void text_escape(struct buf *b, const char *s, size_t len);

/* text_print() - Write @len bytes, escaped. Return: the columns that they take. */
size_t text_print(FILE *out, const char *s, size_t len);

/* text_width() - Columns that escaped text takes on a terminal. */
size_t text_width(const char *s, size_t len);

/* text_fit() - Bytes of as many whole characters as take no more than @columns. */
size_t text_fit(const char *s, size_t len, size_t columns);

#endif
