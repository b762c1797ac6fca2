/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.c - Escapes and widths.
 *
 * The width of a character comes from libc (wcwidth() in a UTF-8 locale, see main()); where it does
 * not know a character it counts as one column.
 */
#include "remote/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <wchar.h>

#include "base/buf.h"
#include "base/utf8.h"

#define TEXT_MAX (256u << 20)

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
