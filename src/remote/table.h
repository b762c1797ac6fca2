/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.h - Rows of text in columns that line up, for people.
 *
 * Cells are added from left to right, row after row, and escaped on the way in (remote/text.h).
 * Nothing is shown before all widths are known. The last column is not padded.
 */
#ifndef CAISSON_REMOTE_TABLE_H
#define CAISSON_REMOTE_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#define TABLE_COLUMNS_MAX 12
#define TABLE_GAP 2 /* columns of space between two */

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
