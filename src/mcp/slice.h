/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slice.h - Members of a JSON object as pieces of its text, without building a tree of it.
 *
 * A result may have 50 MB, and only its head matters to a process that passes it on. The whole text
 * is still checked: slice_members() accepts one object of strict JSON (RFC 8259) in UTF-8, at most
 * SLICE_DEPTH_MAX deep.
 */
#ifndef CAISSON_MCP_SLICE_H
#define CAISSON_MCP_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SLICE_DEPTH_MAX 512u

struct slice {
	const char *at; /* NULL: there is no such member */
	size_t len;
};

/*
 * slice_members() - @keys: which to look for, @n of them; @ret: their values, in that order.
 * A key that is looked for and comes twice is refused: readers do not agree on which one counts.
 * Keys are compared as they are written, so one that is written with escapes is another one.
 * Return: 0, -EINVAL: no JSON, or no object, -ELOOP: too deep. Pure.
 */
int slice_members(const char *text, size_t len, const char *const *keys, size_t n,
		  struct slice *ret);

/* slice_is() - Whether the piece is this text to the letter. */
bool slice_is(const struct slice *s, const char *text);

/* slice_id() - A whole number from 1 up to 2^53, written plainly; 0: it is something else. */
uint64_t slice_id(const struct slice *s);

/* slice_one_line() - Line ends between values become blanks. In strings JSON has none. */
void slice_one_line(char *text, size_t len);

#endif
