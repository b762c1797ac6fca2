/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.c - Escapes and widths of text; tables, which collect cells and then pad them.
 *
 * The width of a character comes from libc (wcwidth() in a UTF-8 locale, see main()); where it does
 * not know a character it counts as one column.
 */
#include "remote/table.h"

#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <wchar.h>

#include "base/utf8.h"

#define TEXT_MAX (256u << 20)
#define CELLS_MAX (16u << 20)
#define CELL_MAX 4096u
#define GAP 2 /* columns of space between two */

/* ---- text ------------------------------------------------------------------------------------ */

/* The code point of a valid character of @n bytes. */
static uint32_t decode(const char *s, size_t n)
{
	const unsigned char *p = (const unsigned char *)s;
	uint32_t v = n == 1 ? p[0] : p[0] & (0xffu >> (n + 1));

	for (size_t i = 1; i < n; i++)
		v = v << 6 | (p[i] & 0x3f);
	return v;
}

/* Characters without a width of their own, and those that change the direction of text. */
static bool is_hidden(uint32_t c)
{
	return (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
	       (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || c == 0x061c;
}

void text_escape(struct buf *b, const char *s, size_t len)
{
	for (size_t i = 0; i < len;) {
		size_t n = utf8_next(s + i, len - i);
		uint32_t c = n ? decode(s + i, n) : 0;

		if (n == 0)
			(void)buf_printf(b, "\\x%02x", (unsigned char)s[i]);
		else if (c == '\n')
			(void)buf_puts(b, "\\n");
		else if (c == '\t')
			(void)buf_puts(b, "\\t");
		else if (c < 0x20 || c == 0x7f)
			(void)buf_printf(b, "\\x%02x", (unsigned)c);
		else if ((c >= 0x80 && c < 0xa0) || is_hidden(c))
			(void)buf_printf(b, "\\u{%04x}", (unsigned)c);
		else
			(void)buf_append(b, s + i, n);
		i += n ? n : 1;
	}
}

size_t text_print(FILE *out, const char *s, size_t len)
{
	_buf_ struct buf safe = BUF_INIT(TEXT_MAX);

	text_escape(&safe, s, len);
	(void)fwrite(buf_str(&safe), 1, safe.len, out);
	return text_width(buf_str(&safe), safe.len);
}

static size_t columns_of(const char *s, size_t n)
{
	int w = n ? wcwidth((wchar_t)decode(s, n)) : 1;

	return w < 0 ? 1 : (size_t)w;
}

size_t text_width(const char *s, size_t len)
{
	size_t width = 0;

	for (size_t i = 0, n; i < len; i += n ? n : 1) {
		n = utf8_next(s + i, len - i);
		width += columns_of(s + i, n);
	}
	return width;
}

size_t text_fit(const char *s, size_t len, size_t columns)
{
	size_t width = 0, i = 0;

	while (i < len) {
		size_t n = utf8_next(s + i, len - i);

		width += columns_of(s + i, n);
		if (width > columns)
			break;
		i += n ? n : 1;
	}
	return i;
}

/* ---- tables ---------------------------------------------------------------------------------- */

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
	size_t gap = last ? 0 : *left < GAP ? *left : GAP;

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
