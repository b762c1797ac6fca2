/* SPDX-License-Identifier: Apache-2.0 */
/* test_table.c - Tables that line up, and text that cannot command a terminal. */
#include <locale.h>
#include <string.h>

#include "../unit.h"
#include "base/clock.h"
#include "remote/table.h"
#include "remote/tty.h"

static void check_escape(const char *in, size_t len, const char *want)
{
	_buf_ struct buf b = BUF_INIT(4096);

	text_escape(&b, in, len);
	assert_string_equal(buf_str(&b), want);
}

TEST(escape)
{
	check_escape("plain", 5, "plain");
	check_escape("caf\xc3\xa9 \xe2\x82\xac", 9, "caf\xc3\xa9 \xe2\x82\xac");
	check_escape("\033[2J\007", 5, "\\x1b[2J\\x07");
	check_escape("a\nb\tc\0d", 7, "a\\nb\\tc\\x00d");
	check_escape("\xff\xc3", 2, "\\xff\\xc3");
	check_escape("\xc2\x9b", 2, "\\u{009b}");     /* CSI in one character */
	check_escape("\xe2\x80\xae", 3, "\\u{202e}"); /* right to left */
	check_escape("\xe2\x80\x8b", 3, "\\u{200b}"); /* no width */
	check_escape("\x7f", 1, "\\x7f");
}

TEST(width)
{
	assert_int_equal(text_width("abc", 3), 3);
	assert_int_equal(text_width("caf\xc3\xa9", 5), 4);
	assert_int_equal(text_width("\xe6\xbc\xa2\xe5\xad\x97", 6), 4); /* two wide ones */
	assert_int_equal(text_fit("\xe6\xbc\xa2\xe5\xad\x97", 6, 3), 3);
	assert_int_equal(text_fit("abc", 3, 0), 0);
}

static const struct table_column columns[] = { { "NAME", false }, { "N", true }, { "X", false } };

TEST(layout)
{
	_buf_ struct buf out = BUF_INIT(4096);
	struct table t;

	table_init(&t, columns, 3);
	table_cell(&t, STYLE_PLAIN, "caf\xc3\xa9");
	table_printf(&t, "%d", 7);
	table_cell(&t, STYLE_GOOD, "yes");
	table_cell(&t, STYLE_PLAIN, "longer-name");
	table_printf(&t, "%d", 1234);
	table_cell(&t, STYLE_PLAIN, "");
	table_render(&t, false, 0, &out);
	assert_string_equal(buf_str(&out), "NAME            N  X\n"
					   "caf\xc3\xa9            7  yes\n"
					   "longer-name  1234\n");
	table_free(&t);
}

TEST(color_and_cut)
{
	_buf_ struct buf out = BUF_INIT(4096);
	struct table t;

	table_init(&t, columns, 3);
	table_cell(&t, STYLE_BAD, "lost\033[0m");
	table_printf(&t, "%d", 7);
	table_cell(&t, STYLE_PLAIN, "value");
	table_render(&t, true, 18, &out);
	/* The escape of the cell is text, ours is not; lines end where the terminal does. */
	assert_string_equal(buf_str(&out),
			    "\033[1mNAME\033[0m         \033[1mN\033[0m  \033[1mX\033[0m\n"
			    "\033[31mlost\\x1b[0m\033[0m  7  va\n");
	table_free(&t);
}

TEST(meter)
{
	char text[128];

	meter_text(12 << 20, 40 << 20, 4 * CLOCK_NS_PER_S, text, sizeof(text));
	assert_string_equal(text, "12 MiB of 40 MiB, 3 MiB/s");
	meter_text(0, 0, 0, text, sizeof(text));
	assert_string_equal(text, "0 B, 0 B/s");
}

int main(void)
{
	(void)setlocale(LC_CTYPE, "C.UTF-8");
	return unit_run();
}
