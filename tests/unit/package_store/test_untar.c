/* SPDX-License-Identifier: Apache-2.0 */
/* test_untar.c - Which archives may become trees, in pieces of every size. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "package_store/untar.h"

/* ---- archives --------------------------------------------------------------------------------------- */

static void put(struct buf *b, char type, const char *name, const char *link, const char *text)
{
	static const char zeros[TAR_BLOCK];
	struct tar_head h = { .type = type, .mode = 06755, .size = strlen(text) };
	uint8_t block[TAR_BLOCK];

	(void)snprintf(h.name, sizeof(h.name), "%s", name);
	(void)snprintf(h.link, sizeof(h.link), "%s", link);
	tar_format(block, &h);
	(void)buf_append(b, block, sizeof(block));
	(void)buf_append(b, text, strlen(text));
	(void)buf_append(b, zeros, (TAR_BLOCK - strlen(text) % TAR_BLOCK) % TAR_BLOCK);
}

static void finish(struct buf *b)
{
	static const char zeros[2 * TAR_BLOCK];

	(void)buf_append(b, zeros, sizeof(zeros));
}

/* What came out, as text. */
static int on_entry(void *arg, const struct untar_entry *en, struct err *e)
{
	(void)e;
	return buf_printf(arg, "%c%s%s%s%s|", en->type, en->executable ? "x" : "", en->path,
			  en->type == '2' ? ">" : "", en->type == '2' ? en->link : "");
}

static int on_data(void *arg, const char *data, size_t len, struct err *e)
{
	(void)e;
	return buf_append(arg, data, len);
}

static int on_close(void *arg, struct err *e)
{
	(void)e;
	return buf_puts(arg, ".");
}

static const struct untar_sink sink = { on_entry, on_data, on_close };

static int feed(const struct buf *b, size_t piece, struct buf *out, struct err *e)
{
	struct untar u = { .max_bytes = 1000, .max_files = 5 };
	int r = 0;

	*e = (struct err){ 0 };
	for (size_t at = 0; r == 0 && at < b->len; at += piece)
		r = untar_feed(&u, &sink, out, b->data + at,
			       b->len - at < piece ? b->len - at : piece, e);
	if (r == 0 && !untar_ended(&u))
		r = -ENODATA;
	untar_free(&u);
	return r;
}

/* ---- tests -------------------------------------------------------------------------------------------- */

static void test_tree(void **state)
{
	_buf_ struct buf b = BUF_INIT(1 << 20);
	struct err e;

	(void)state;
	put(&b, '5', "./", "", "");
	put(&b, '5', "./pkg/", "", "");
	put(&b, '0', "./pkg//a.py", "", "print(1)");
	put(&b, '0', "pkg/empty", "", "");
	put(&b, '2', "pkg/l", "../pkg/a.py", "");
	finish(&b);
	for (size_t piece = 1; piece < 1100; piece += piece < 20 ? 1 : 97) {
		_buf_ struct buf out = BUF_INIT(1 << 16);

		assert_int_equal(feed(&b, piece, &out, &e), 0);
		assert_string_equal(buf_str(&out),
				    "5xpkg|0xpkg/a.py|print(1).0xpkg/empty|.2xpkg/l>../pkg/a.py|");
	}
}

static int one(char type, const char *name, const char *link)
{
	_buf_ struct buf b = BUF_INIT(1 << 20);
	_buf_ struct buf out = BUF_INIT(1 << 16);
	struct err e;

	put(&b, type, name, link, "");
	finish(&b);
	return feed(&b, 512, &out, &e);
}

static void test_refused(void **state)
{
	static const struct {
		char type;
		const char *name, *link;
	} rows[] = {
		{ '0', "/etc/passwd", "" },
		{ '0', "../x", "" },
		{ '0', "a/../../x", "" },
		{ '1', "a", "b" },
		{ '3', "a", "" },
		{ '4', "a", "" },
		{ '6', "a", "" },
		{ '2', "a", "/etc" },
		{ '2', "a", "../x" },
		{ '2', "a/b", "../../x" },
		{ '2', "a", "b/../../x" },
		{ '2', "a", "" },
		{ '0', "", "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(one(rows[i].type, rows[i].name, rows[i].link), -EPERM);
	assert_int_equal(one('2', "a/b", "../x"), 0);
	assert_int_equal(one('2', "a", "b/c"), 0);
}

static void test_bounds(void **state)
{
	_buf_ struct buf many = BUF_INIT(1 << 20);
	_buf_ struct buf large = BUF_INIT(1 << 20);
	_buf_ struct buf cut = BUF_INIT(1 << 20);
	_buf_ struct buf out = BUF_INIT(1 << 16);
	struct err e;

	(void)state;
	for (char c = 'a'; c < 'g'; c++)
		put(&many, '0', (char[]){ c, '\0' }, "", "x");
	finish(&many);
	assert_int_equal(feed(&many, 512, &out, &e), -EFBIG);
	for (char c = 'a'; c < 'd'; c++) {
		char text[401];

		memset(text, 'x', 400);
		text[400] = '\0';
		put(&large, '0', (char[]){ c, '\0' }, "", text);
	}
	finish(&large);
	assert_int_equal(feed(&large, 512, &out, &e), -EFBIG);
	put(&cut, '0', "a", "", "x");
	assert_int_equal(feed(&cut, 512, &out, &e), -ENODATA);
	(void)buf_append(&cut, "no archive", 10);
	for (size_t i = 0; i < 502; i++)
		(void)buf_append(&cut, "x", 1);
	assert_int_equal(feed(&cut, 512, &out, &e), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tree),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
