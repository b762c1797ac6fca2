/* SPDX-License-Identifier: Apache-2.0 */
/* test_prescan.c - Heads, good and bad: the verdict, where it falls, and that cutting changes
 * nothing. */
#include "net/prescan.h"

#include <stdio.h>
#include <string.h>

#include "../unit.h"
#include "base/buf.h"
#include "base/fd.h"

#define HEAD_MAX 1000
#define TARGET_MAX 100

#define LINE "GET / HTTP/1.1\r\n"
#define HOST "Host: h\r\n"
#define POST "POST / HTTP/1.1\r\nHost: h\r\n"

#define T(text_, status_, message_)                                                                \
	{                                                                                          \
		.text = (text_), .len = sizeof(text_) - 1, .status = (status_),                    \
		.message = (message_)                                                              \
	}

/* status 0: accepted, to its last byte */
static const struct row {
	const char *text;
	size_t len;
	int status;
	const char *message; /* a part of it */
} rows[] = {
	T(LINE HOST "\r\n", 0, ""),
	T("\r\n" LINE HOST "\r\n", 0, ""),
	T("GET / HTTP/1.0\r\n\r\n", 0, ""),
	T("GET / HTTP/1.0\r\nHost: a\r\n\r\n", 0, ""),
	T("OPTIONS * HTTP/1.1\r\nhOsT:h\r\n\r\n", 0, ""),
	T("M-SEARCH /a?b=%20&c HTTP/1.1\r\nHost: h\r\n\r\n", 0, ""),
	T(LINE HOST "X:\r\nY: \t a\tb \r\n\r\n", 0, ""),
	T(LINE HOST "!#$%&'*+-.^_`|~09azAZ: v\r\n\r\n", 0, ""),
	T(LINE HOST "X: caf\xc3\xa9 \xff\r\n\r\n", 0, ""),
	T(LINE HOST "Host2: a\r\nXHost: b\r\n\r\n", 0, ""),
	T(LINE HOST "Transfer-Encodings: gzip\r\nContent-Lengthy: x\r\n\r\n", 0, ""),
	T(LINE HOST "A-Name-That-Is-Longer-Than-What-Is-Kept: x\r\n\r\n", 0, ""),
	T(POST "Content-Length: 0\r\n\r\n", 0, ""),
	T(POST "Content-Length: \t 12 \t\r\n\r\n", 0, ""),
	T(POST "content-length:9223372036854775807\r\n\r\n", 0, ""),
	T(POST "Transfer-Encoding: chunked\r\n\r\n", 0, ""),
	T(POST "Transfer-Encoding: \tChunkeD \r\n\r\n", 0, ""),

	/* lines */
	T("GET / HTTP/1.1\nHost: h\r\n\r\n", 400, "bare LF"),
	T(LINE "Host: h\n\r\n", 400, "bare LF"),
	T(LINE HOST "\n", 400, "bare LF"),
	T("\n" LINE HOST "\r\n", 400, "bare LF"),
	T("GET / HTTP/1.1\rHost: h\r\n\r\n", 400, "CR"),
	T(LINE HOST "X: a\rb\r\n\r\n", 400, "CR"),
	T(LINE HOST "X: a\r\rb\r\n\r\n", 400, "CR"),
	T(LINE HOST "\rX", 400, "CR"),
	T(LINE HOST "X\r: a\r\n\r\n", 400, "CR"),
	T("G\rET / HTTP/1.1\r\n\r\n", 400, "CR"),
	T("\r\n\r\n" LINE HOST "\r\n", 400, "CR"),
	T("\rGET", 400, "CR"),

	/* request line */
	T("GET  / HTTP/1.1\r\n" HOST "\r\n", 400, "target"),
	T("GET /\tHTTP/1.1\r\n" HOST "\r\n", 400, "target"),
	T("GET /\x80 HTTP/1.1\r\n" HOST "\r\n", 400, "percent-encoded"),
	T("GET /\x7f HTTP/1.1\r\n" HOST "\r\n", 400, "percent-encoded"),
	T("GET /\x01 HTTP/1.1\r\n" HOST "\r\n", 400, "percent-encoded"),
	T("GET /\0 HTTP/1.1\r\n" HOST "\r\n", 400, "NUL"),
	T("GET /a b HTTP/1.1\r\n" HOST "\r\n", 400, "HTTP version"),
	T("GET /\r\n\r\n", 400, "CR"),
	T("GET / \r\n\r\n", 400, "CR"),
	T("GET / http/1.1\r\n" HOST "\r\n", 400, "HTTP version"),
	T("GET / HTTP/1.1 \r\n" HOST "\r\n", 400, "HTTP version"),
	T("GET / HTTP/1.10\r\n" HOST "\r\n", 400, "HTTP version"),
	T("GET / HTTP/11\r\n" HOST "\r\n", 400, "HTTP version"),
	T("GET / HTTP/x.1\r\n" HOST "\r\n", 400, "HTTP version"),
	T("GET / ICY/1.1\r\n" HOST "\r\n", 400, "HTTP version"),
	T("GET / HTTP/1.2\r\n" HOST "\r\n", 505, "1.0 and"),
	T("GET / HTTP/2.0\r\n" HOST "\r\n", 505, "1.0 and"),
	T("GET / HTTP/0.9\r\n" HOST "\r\n", 505, "1.0 and"),
	T("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, "1.0 and"),
	T(" GET / HTTP/1.1\r\n" HOST "\r\n", 400, "method"),
	T("GE(T / HTTP/1.1\r\n" HOST "\r\n", 400, "method"),
	T("G\xc3T / HTTP/1.1\r\n" HOST "\r\n", 400, "method"),
	T("\0GET / HTTP/1.1\r\n" HOST "\r\n", 400, "NUL"),
	T("\x16\x03\x01\x02", 400, "method"), /* a TLS client */
	T("ABCDEFGHIJKLMNOPQRSTUVWXY / HTTP/1.1\r\n" HOST "\r\n", 400, "too long"),

	/* header lines */
	T(LINE HOST "X: a\r\n b\r\n\r\n", 400, "folding"),
	T(LINE HOST "X: a\r\n\tb\r\n\r\n", 400, "folding"),
	T(LINE " Host: h\r\n\r\n", 400, "folding"),
	T(LINE HOST "X : a\r\n\r\n", 400, "colon"),
	T(LINE HOST "X\t: a\r\n\r\n", 400, "colon"),
	T(LINE HOST "X Y: a\r\n\r\n", 400, "colon"),
	T(LINE HOST ": a\r\n\r\n", 400, "without a name"),
	T(LINE HOST "X\r\n\r\n", 400, "CR"),
	T(LINE HOST "X(: a\r\n\r\n", 400, "name"),
	T(LINE HOST "X\x80: a\r\n\r\n", 400, "name"),
	T(LINE HOST "X\0: a\r\n\r\n", 400, "NUL"),
	T(LINE HOST "X: a\0b\r\n\r\n", 400, "NUL"),
	T(LINE HOST "X: a\x0b"
		    "b\r\n\r\n",
	  400, "control"),
	T(LINE HOST "X: \x7f\r\n\r\n", 400, "control"),
	T(LINE HOST "X: \x1b[0m\r\n\r\n", 400, "control"),

	/* Host */
	T(LINE "\r\n", 400, "without a Host"),
	T(LINE "X: y\r\n\r\n", 400, "without a Host"),
	T(LINE HOST HOST "\r\n", 400, "more than one Host"),
	T(LINE HOST "X: y\r\nHOST: other\r\n\r\n", 400, "more than one Host"),
	T("GET / HTTP/1.0\r\n" HOST HOST "\r\n", 400, "more than one Host"),

	/* framing */
	T(POST "Content-Length: 5\r\nContent-Length: 5\r\n\r\n", 400,
	  "more than one Content-Length"),
	T(POST "Content-Length: 5\r\ncontent-length: 6\r\n\r\n", 400,
	  "more than one Content-Length"),
	T(POST "Content-Length: 5, 5\r\n\r\n", 400, "decimal"),
	T(POST "Content-Length: -1\r\n\r\n", 400, "decimal"),
	T(POST "Content-Length: +1\r\n\r\n", 400, "decimal"),
	T(POST "Content-Length: 0x10\r\n\r\n", 400, "decimal"),
	T(POST "Content-Length: 1e3\r\n\r\n", 400, "decimal"),
	T(POST "Content-Length: 1 2\r\n\r\n", 400, "decimal"),
	T(POST "Content-Length: 5;\r\n\r\n", 400, "decimal"),
	T(POST "Content-Length: \xd9\xa1\r\n\r\n", 400, "decimal"),
	T(POST "Content-Length:\r\n\r\n", 400, "without a number"),
	T(POST "Content-Length: \t\r\n\r\n", 400, "without a number"),
	T(POST "Content-Length: 9223372036854775808\r\n\r\n", 400, "too large"),
	T(POST "Content-Length: 99999999999999999999999\r\n\r\n", 400, "too large"),
	T(POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "both"),
	T(POST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", 400, "both"),
	T(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 400,
	  "more than one"),
	T(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n", 400,
	  "more than one"),
	T("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "HTTP/1.0"),
	T(POST "Transfer-Encoding: gzip\r\n\r\n", 501, "transfer coding"),
	T(POST "Transfer-Encoding: identity\r\n\r\n", 501, "transfer coding"),
	T(POST "Transfer-Encoding: xchunked\r\n\r\n", 501, "transfer coding"),
	T(POST "Transfer-Encoding: chunke\r\n\r\n", 501, "transfer coding"),
	T(POST "Transfer-Encoding: chunkedd\r\n\r\n", 501, "transfer coding"),
	T(POST "Transfer-Encoding: gzip, chunked\r\n\r\n", 400, "exactly"),
	T(POST "Transfer-Encoding: chunked, identity\r\n\r\n", 400, "exactly"),
	T(POST "Transfer-Encoding: chunked,\r\n\r\n", 400, "exactly"),
	T(POST "Transfer-Encoding: ,chunked\r\n\r\n", 400, "exactly"),
	T(POST "Transfer-Encoding: chunked chunked\r\n\r\n", 400, "exactly"),
	T(POST "Transfer-Encoding: chun ked\r\n\r\n", 400, "exactly"),
	T(POST "Transfer-Encoding: \"chunked\"\r\n\r\n", 400, "exactly"),
	T(POST "Transfer-Encoding: chunked;q=1\r\n\r\n", 400, "exactly"),
	T(POST "Transfer-Encoding:\r\n\r\n", 400, "exactly"),
	T(POST "Transfer-Encoding: \x0b"
	       "chunked\r\n\r\n",
	  400, "control"),
	T(POST "Transfer-Encoding: chunked\x0c\r\n\r\n", 400, "control"),
	T(POST "Transfer-Encoding:\r\n chunked\r\n\r\n", 400, "exactly"),
	T(POST "Transfer-Encoding : chunked\r\n\r\n", 400, "colon"),
	T(POST "Transfer-Encoding\r\n: chunked\r\n\r\n", 400, "CR"),
};

static enum prescan_result feed(struct prescan *p, const char *text, size_t len, size_t step)
{
	enum prescan_result r = PRESCAN_MORE;

	prescan_init(p, HEAD_MAX, TARGET_MAX);
	for (size_t at = 0; at < len && r == PRESCAN_MORE; at += step) {
		size_t n = len - at < step ? len - at : step, used;

		r = prescan_feed(p, text + at, n, &used);
		assert_true(used <= n);
		if (r == PRESCAN_MORE)
			assert_int_equal(used, n);
	}
	return r;
}

static void check(const struct row *row, size_t step)
{
	struct prescan p;
	enum prescan_result r = feed(&p, row->text, row->len, step);
	size_t used = 99;

	if (r != (row->status ? PRESCAN_BAD : PRESCAN_DONE) || p.status != row->status)
		fail_msg("row %zu, step %zu: result %d, status %d (%s)", (size_t)(row - rows), step,
			 r, p.status, p.message ? p.message : "");
	if (row->status)
		assert_non_null(strstr(p.message, row->message));
	else
		assert_int_equal(p.head_len, row->len);
	/* It is over: nothing more is taken. */
	assert_int_equal(prescan_feed(&p, "GET", 3, &used), r);
	assert_int_equal(used, 0);
}

TEST(table)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		for (size_t step = 1; step <= rows[i].len; step++)
			check(&rows[i], step);
	print_message("%zu heads\n", ARRAY_SIZE(rows));
}

/* Bytes behind the head are not touched, and every beginning of a good head asks for more. */
TEST(where_it_ends)
{
	static const char text[] = "\r\n" POST "Content-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\n";
	size_t head = (size_t)(strstr(text, "abc") - text), used;
	struct prescan p;

	for (size_t n = 0; n < head; n++)
		assert_int_equal(feed(&p, text, n, sizeof(text)), PRESCAN_MORE);
	prescan_init(&p, HEAD_MAX, TARGET_MAX);
	assert_int_equal(prescan_feed(&p, text, sizeof(text) - 1, &used), PRESCAN_DONE);
	assert_int_equal(used, head);
	assert_int_equal(p.head_len, head);
	assert_int_equal(p.skipped, 2);
	assert_int_equal(p.n_headers, 2);
	assert_int_equal(p.target_len, 1);
	assert_int_equal(p.minor, 1);
	assert_true(p.has_length);
	assert_int_equal(p.length, 3);
	assert_false(p.chunked);
}

TEST(facts)
{
	struct prescan p;

	static const char chunked[] = POST "Transfer-Encoding: chunked\r\n\r\n";

	assert_int_equal(feed(&p, chunked, sizeof(chunked) - 1, 9), PRESCAN_DONE);
	assert_true(p.chunked && !p.has_length);
	assert_int_equal(p.n_headers, 2);
	assert_int_equal(feed(&p, "GET /abc HTTP/1.0\r\n\r\n", 21, 4), PRESCAN_DONE);
	assert_int_equal(p.minor, 0);
	assert_int_equal(p.target_len, 4);
	assert_false(p.has_length || p.chunked);
}

static void put_headers(struct buf *b, size_t n)
{
	(void)buf_puts(b, "GET / HTTP/1.1\r\nHost:h\r\n");
	for (size_t i = 1; i < n; i++)
		(void)buf_puts(b, "a:b\r\n");
	(void)buf_puts(b, "\r\n");
}

TEST(limits)
{
	_buf_ struct buf b = BUF_INIT(1 << 20);
	struct prescan p;

	put_headers(&b, PRESCAN_HEADERS_MAX);
	assert_int_equal(feed(&p, b.data, b.len, b.len), PRESCAN_DONE);
	buf_clear(&b);
	put_headers(&b, PRESCAN_HEADERS_MAX + 1);
	assert_int_equal(feed(&p, b.data, b.len, 7), PRESCAN_BAD);
	assert_int_equal(p.status, 431);

	/* A target of exactly the maximum, and of one byte more. */
	for (int more = 0; more < 2; more++) {
		buf_clear(&b);
		(void)buf_printf(&b, "GET /%0*d HTTP/1.1\r\nHost: h\r\n\r\n", TARGET_MAX - 1 + more,
				 0);
		assert_int_equal(feed(&p, b.data, b.len, 3), more ? PRESCAN_BAD : PRESCAN_DONE);
		assert_int_equal(p.status, more ? 414 : 0);
	}

	/* The same for the head; and one that never ends is cut off at the maximum. */
	for (int more = 0; more < 2; more++) {
		buf_clear(&b);
		(void)buf_printf(&b, LINE HOST "X: %0*d\r\n\r\n", HEAD_MAX - 32 + more, 0);
		assert_int_equal(b.len, HEAD_MAX + (size_t)more);
		assert_int_equal(feed(&p, b.data, b.len, 100), more ? PRESCAN_BAD : PRESCAN_DONE);
		assert_int_equal(p.status, more ? 431 : 0);
	}
	buf_clear(&b);
	(void)buf_puts(&b, LINE HOST "X: ");
	for (int i = 0; i < 5000; i++)
		(void)buf_puts(&b, "y");
	assert_int_equal(feed(&p, b.data, b.len, 1), PRESCAN_BAD);
	assert_int_equal(p.status, 431);
	assert_int_equal(p.head_len, HEAD_MAX);
}
