/* SPDX-License-Identifier: Apache-2.0 */
/* test_tar_reader.c - The entries that each set of rules permits, in pieces of every size. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../unit.h"
#include "archive/tar_reader.h"
#include "archive/tar_writer.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"

/* ---- archives -------------------------------------------------------------------------------- */

static int append(void *arg, const void *data, size_t len)
{
	return buf_append(arg, data, len);
}

static void put_sized(struct buf *b, char type, const char *name, const char *link,
		      const char *text, uint64_t size)
{
	const struct tar_writer w = { append, b };
	struct tar_entry en = {
		.type = type, .mode = 06755, .size = size, .path = name, .link = link
	};

	assert_int_equal(tar_put_head(&w, &en), 0);
	assert_int_equal(append(b, text, strlen(text)), 0);
	assert_int_equal(tar_put_padding(&w, strlen(text)), 0);
}

static void put(struct buf *b, char type, const char *name, const char *link, const char *text)
{
	put_sized(b, type, name, link, text, strlen(text));
}

static void finish(struct buf *b)
{
	assert_int_equal(tar_put_end(&(struct tar_writer){ append, b }), 0);
}

/* A header with data of any kind: 'x', 'L', 'K', 'g'. */
static void put_meta(struct buf *b, char type, const char *data, size_t len)
{
	const struct tar_writer w = { append, b };
	uint8_t block[TAR_BLOCK];

	tar_format(block, &(struct tar_entry){ .type = type, .path = "meta", .size = len });
	assert_int_equal(append(b, block, sizeof(block)), 0);
	assert_int_equal(append(b, data, len), 0);
	assert_int_equal(tar_put_padding(&w, len), 0);
}

/* The entries that came out, as text. */
static int on_entry(void *arg, const struct tar_entry *en, struct err *e)
{
	(void)e;
	return buf_printf(arg, "%c%s%s%s%s|", en->type, en->mode & 0111 ? "x" : "", en->path,
			  strchr("12", en->type) ? ">" : "",
			  strchr("12", en->type) ? en->link : "");
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

static const struct tar_sink sink = { on_entry, on_data, on_close };

/* As the package store has it, and as the workspace store and the client have it. */
static const struct tar_rules strict = { .path_max = 300,
					 .meta_max = 2000,
					 .depth_max = 4,
					 .max_bytes = 1000,
					 .max_files = 5,
					 .kinds = "025",
					 .links_inside = true };
static const struct tar_rules whole = { .path_max = 300,
					.meta_max = 2000,
					.depth_max = 4,
					.max_bytes = 1000,
					.max_files = 5,
					.kinds = "01256" };
static const struct tar_rules skipping = { .path_max = 300,
					   .meta_max = 2000,
					   .depth_max = 4,
					   .max_bytes = 1000,
					   .max_files = 5,
					   .kinds = "025",
					   .links_inside = true,
					   .skips = true };
static struct tar_reader last; /* its counters, after the archive */

static int feed_by(const struct tar_rules *rules, const struct buf *b, size_t piece,
		   struct buf *out, struct err *e)
{
	struct tar_reader t = { .rules = rules };
	int r = 0;

	*e = (struct err){ 0 };
	for (size_t at = 0; r == 0 && at < b->len; at += piece)
		r = tar_feed(&t, &sink, out, b->data + at,
			     b->len - at < piece ? b->len - at : piece, e);
	if (r < 0) { /* a refusal is final */
		assert_int_equal(tar_feed(&t, &sink, out, "x", 1, NULL), r);
		assert_int_equal(e->code, r);
	}
	if (r == 0 && !tar_ended(&t))
		r = -ENODATA;
	last = t;
	tar_reader_free(&t);
	return r;
}

static int feed(const struct buf *b, size_t piece, struct buf *out, struct err *e)
{
	return feed_by(&strict, b, piece, out, e);
}

/* ---- tests ----------------------------------------------------------------------------------- */

TEST(tree)
{
	_buf_ struct buf b = BUF_INIT(1 << 20);
	struct err e;

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

static int one_by(const struct tar_rules *rules, char type, const char *name, const char *link)
{
	_buf_ struct buf b = BUF_INIT(1 << 20);
	_buf_ struct buf out = BUF_INIT(1 << 16);
	struct err e;

	put(&b, type, name, link, "");
	finish(&b);
	return feed_by(rules, &b, 512, &out, &e);
}

/* The ruling of each of the three sets of rules on an entry: 0 takes it, 1 skips it. */
TEST(rules)
{
	static const struct {
		char type;
		const char *name, *link;
		int strict, whole, skipping;
	} rows[] = {
		{ '0', "/etc/passwd", "", -EPERM, -EPERM, -EPERM },
		{ '0', "../x", "", -EPERM, -EPERM, -EPERM },
		{ '0', "a/../../x", "", -EPERM, -EPERM, -EPERM },
		{ '5', "a/..", "", -EPERM, -EPERM, -EPERM },
		{ '3', "../a", "", -EPERM, -EPERM, -EPERM },
		{ '0', "a/b/c/d", "", 0, 0, 0 },
		{ '0', "a/b/c/d/e", "", -EPERM, -EPERM, -EPERM },
		{ '0', "", "", -EPERM, -EPERM, -EPERM },
		{ '0', "./.", "", -EPERM, -EPERM, -EPERM },
		{ '3', "a", "", -EPERM, -EPERM, 1 },
		{ '4', "a", "", -EPERM, -EPERM, 1 },
		{ 'S', "a", "", -EPERM, -EPERM, 1 },
		{ '6', "a", "", -EPERM, 0, 1 },
		{ '2', "a", "/etc", -EPERM, 0, 1 },
		{ '2', "a", "../x", -EPERM, 0, 1 },
		{ '2', "a/b", "../../x", -EPERM, 0, 1 },
		{ '2', "a//b", "../../x", -EPERM, 0, 1 }, /* one directory, not two */
		{ '2', "./a", "../x", -EPERM, 0, 1 },
		{ '2', "a", "b/../../x", -EPERM, 0, 1 },
		{ '2', "a", "", -EPERM, -EBADMSG, 1 },
		{ '2', "a/b", "../x", 0, 0, 0 },
		{ '2', "a", "b/c", 0, 0, 0 },
		{ '1', "a", "b", -EPERM, 0, 1 },
		{ '1', "a", "/b", -EPERM, -EPERM, 1 },
		{ '1', "a", "b/../c", -EPERM, -EPERM, 1 },
		{ '1', "a", "", -EPERM, -EPERM, 1 },
		{ '1', "a", "./", -EPERM, -EPERM, 1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(one_by(&strict, rows[i].type, rows[i].name, rows[i].link),
				 rows[i].strict);
		assert_int_equal(one_by(&whole, rows[i].type, rows[i].name, rows[i].link),
				 rows[i].whole);
		int r = one_by(&skipping, rows[i].type, rows[i].name, rows[i].link);

		assert_int_equal(r ? r : (int)last.skipped, rows[i].skipping);
	}
}

static const char *read_meta(char type, const char *data, size_t len, int *ret)
{
	static char text[1000];
	_buf_ struct buf b = BUF_INIT(1 << 20);
	_buf_ struct buf out = BUF_INIT(1 << 16);
	struct err e;

	put_meta(&b, type, data, len);
	put(&b, '2', "a", "b", "");
	put(&b, '0', "c", "", "");
	finish(&b);
	*ret = feed_by(&whole, &b, 100, &out, &e);
	(void)snprintf(text, sizeof(text), "%s", buf_str(&out));
	return text;
}

/*
 * Long names, from pax and from GNU: for the next entry and no other, and held to the same rules.
 */
TEST(meta)
{
	static const struct {
		char type;
		const char *data;
		size_t len;
		int r;
		enum tar_fault fault;
		const char *out;
	} rows[] = {
		{ 'x', "10 path=p\n", 10, 0, TAR_NO_FAULT, "2xp>b|0xc|." },
		{ 'x', "14 linkpath=q\n", 14, 0, TAR_NO_FAULT, "2xa>q|0xc|." },
		{ 'L', "x//y\0", 5, 0, TAR_NO_FAULT, "2xx/y>b|0xc|." },
		{ 'K', "q", 1, 0, TAR_NO_FAULT, "2xa>q|0xc|." },
		{ 'g', "10 path=p\n", 10, 0, TAR_NO_FAULT, "2xa>b|0xc|." },
		{ 'x', "", 0, 0, TAR_NO_FAULT, "2xa>b|0xc|." },
		{ 'x', "13 path=../p\n", 13, -EPERM, TAR_UP, "" },
		{ 'L', "/p", 2, -EPERM, TAR_ABSOLUTE, "" },
		{ 'L', "", 0, -EBADMSG, TAR_BAD_NAME, "" },
		{ 'x', "9 path=\n", 9, -EBADMSG, TAR_BAD_RECORD, "" },
		{ 'x', "8 path=\n", 8, -EBADMSG, TAR_BAD_NAME, "" },
		{ 'x', "12 path=p\0q\n", 12, -EBADMSG, TAR_BAD_NAME, "" },
		{ 'x', "11 size=-5\n", 11, -EBADMSG, TAR_BAD_RECORD, "" },
		{ 'x', "11 mtime=x\n", 11, -EBADMSG, TAR_BAD_RECORD, "" },
		{ 'x', "22 GNU.sparse.major=1\n", 22, -EPERM, TAR_SPARSE, "" },
	};
	char large[2001];
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *out = read_meta(rows[i].type, rows[i].data, rows[i].len, &r);

		assert_int_equal(r, rows[i].r);
		assert_int_equal(last.fault, rows[i].fault);
		assert_string_equal(out, rows[i].out);
	}
	memset(large, 'n', sizeof(large));
	(void)read_meta('L', large, sizeof(large), &r);
	assert_int_equal(last.fault, TAR_LONG_META);
	(void)read_meta('L', large, 300, &r);
	assert_int_equal(last.fault, TAR_LONG_NAME);
	(void)read_meta('K', large, 299, &r);
	assert_int_equal(r, 0);
}

/* Values that do not fit into a header come back: a path, a target, a size. */
TEST(long)
{
	_buf_ struct buf b = BUF_INIT(1 << 20);
	_buf_ struct buf out = BUF_INIT(1 << 16);
	struct tar_rules rules = whole;
	char path[251], link[201], want[800];
	struct err e;

	rules.max_bytes = UINT64_MAX;
	memset(path, 'p', 250);
	memset(link, '\xe9', 200);
	path[250] = link[200] = '\0';
	path[99] = '/'; /* a header has the name up to here: not a directory */
	put(&b, '0', path, "", "text");
	put(&b, '2', path, link, "");
	put_sized(&b, '0', "large", "", "", TAR_SIZE_MAX + 1);
	(void)snprintf(want, sizeof(want), "0x%s|text.2x%s>%s|0xlarge|", path, path, link);
	assert_int_equal(feed_by(&rules, &b, 77, &out, &e), -ENODATA);
	assert_string_equal(buf_str(&out), want);
	assert_int_equal(last.left, TAR_SIZE_MAX + 1);
}

TEST(bounds)
{
	_buf_ struct buf many = BUF_INIT(1 << 20);
	_buf_ struct buf large = BUF_INIT(1 << 20);
	_buf_ struct buf cut = BUF_INIT(1 << 20);
	_buf_ struct buf out = BUF_INIT(1 << 16);
	struct err e;

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
	cut.len--; /* a file without all of its padding is not complete */
	buf_clear(&out);
	assert_int_equal(feed(&cut, 512, &out, &e), -ENODATA);
	assert_string_equal(buf_str(&out), "0xa|x");
	cut.len++;
	assert_int_equal(feed(&cut, 512, &out, &e), -ENODATA);
	(void)buf_append(&cut, "no archive", 10);
	for (size_t i = 0; i < 502; i++)
		(void)buf_append(&cut, "x", 1);
	assert_int_equal(feed(&cut, 512, &out, &e), -EBADMSG);
}
