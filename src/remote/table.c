/* SPDX-License-Identifier: Apache-2.0 */
/* table.c - Collect cells, then pad them. */
#include "remote/table.h"

#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include "remote/text.h"

#define CELLS_MAX (16u << 20)
#define CELL_MAX 4096u

void table_init(struct table *t, const struct table_column *columns, size_t n)
{
	*t = (struct table){ .columns = columns, .n_columns = n };
	buf_init(&t->cells, CELLS_MAX);
	for (size_t i = 0; i < n; i++)
		t->width[i] = text_width(columns[i].title, strlen(columns[i].title));
}

void table_free(struct table *t)
{
	buf_free(&t->cells);
}

void table_cell(struct table *t, enum table_style style, const char *text)
{
	_buf_ struct buf safe = BUF_INIT(CELL_MAX);
	size_t column = t->n_cells % t->n_columns, len = strlen(text);
	char mark = (char)('0' + style);

	text_escape(&safe, text, len);
	size_t width = text_width(buf_str(&safe), safe.len);

	if (width > t->width[column])
		t->width[column] = width;
	(void)buf_append(&t->cells, &mark, 1);
	(void)buf_append(&t->cells, buf_str(&safe), safe.len + 1);
	t->n_cells++;
}

void table_printf(struct table *t, const char *fmt, ...)
{
	_buf_ struct buf text = BUF_INIT(CELL_MAX);
	va_list ap;

	va_start(ap, fmt);
	(void)buf_vprintf(&text, fmt, ap);
	va_end(ap);
	table_cell(t, STYLE_PLAIN, buf_str(&text));
}

/* ---- showing ------------------------------------------------------------------------------- */

static void spaces(struct buf *out, size_t n)
{
	while (n-- > 0)
		(void)buf_puts(out, " ");
}

static const char *const colors[] = {
	[STYLE_PLAIN] = "",
	[STYLE_GOOD] = "\033[32m",
	[STYLE_BAD] = "\033[31m",
	[STYLE_DIM] = "\033[2m",
};

/* One cell; @left is how many columns the line still has. */
static void put_cell(const struct table *t, size_t column, const char *text, const char *color,
		     size_t *left, struct buf *out)
{
	size_t len = text_fit(text, strlen(text), *left);
	size_t width = text_width(text, len);
	size_t pad = t->width[column] > width ? t->width[column] - width : 0;
	bool last = column + 1 == t->n_columns;

	pad = pad > *left - width ? *left - width : pad;
	if (t->columns[column].right)
		spaces(out, pad);
	(void)buf_puts(out, color);
	(void)buf_append(out, text, len);
	(void)buf_puts(out, *color ? "\033[0m" : "");
	if (!t->columns[column].right && !last)
		spaces(out, pad);
	*left -= width + pad;
	size_t gap = last ? 0 : *left < TABLE_GAP ? *left : TABLE_GAP;

	spaces(out, gap);
	*left -= gap;
	if (!last)
		return;
	while (out->len > 0 && out->data[out->len - 1] == ' ')
		out->data[--out->len] = '\0';
	(void)buf_puts(out, "\n");
}

void table_render(const struct table *t, bool color, size_t columns, struct buf *out)
{
	size_t limit = columns ? columns : SIZE_MAX / 2, left = limit;
	const char *at = buf_str(&t->cells), *end = at + t->cells.len;

	if (t->n_columns == 0)
		return;
	for (size_t i = 0; i < t->n_columns; i++)
		put_cell(t, i, t->columns[i].title, color ? "\033[1m" : "", &left, out);
	for (size_t i = 0; i < t->n_cells && at < end; i++) {
		size_t column = i % t->n_columns, style = (size_t)(*at - '0');

		if (column == 0)
			left = limit;
		put_cell(t, column, at + 1, color ? colors[style] : "", &left, out);
		at += strlen(at) + 1;
	}
}
