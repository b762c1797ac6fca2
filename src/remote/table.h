/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.h - Untrusted text made safe for a terminal, and rows of it in columns that line up.
 *
 * Text of a daemon or a sandbox may hold bytes that move the cursor, change the title or turn the
 * direction of writing. Everything in tables and messages is escaped. The output of programs is
 * not: it is passed on byte for byte.
 *
 * Cells are added from left to right, row after row, and escaped on the way in. Nothing is shown
 * before all widths are known. The last column is not padded.
 */
#ifndef CAISSON_REMOTE_TABLE_H
#define CAISSON_REMOTE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/buf.h"

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

#define TABLE_COLUMNS_MAX 12

struct table_column {
	const char *title;
	bool right; /* numbers */
};

struct table {
	const struct table_column *columns;
	size_t n_columns, n_cells;
	size_t width[TABLE_COLUMNS_MAX];
	struct buf cells; /* style, escaped text, NUL; one after another */
};

/* The looks of a cell, on a terminal. */
enum table_style { STYLE_PLAIN, STYLE_GOOD, STYLE_BAD, STYLE_DIM };

void table_init(struct table *t, const struct table_column *columns, size_t n);
void table_free(struct table *t);

void table_cell(struct table *t, enum table_style style, const char *text);
void table_printf(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * table_render() - All of it, a line per row, the titles first.
 * @columns: cut lines there; 0: never.
 */
void table_render(const struct table *t, bool color, size_t columns, struct buf *out);

#endif
