/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_http.c - Raw requests over a real socket, in one piece and byte by byte: the answer, whether
 * the connection is kept, and that only the intended requests are executed.
 */
#include "http_kit.h"

#define G "GET / HTTP/1.1\r\nHost: h\r\n\r\n"
#define POST "POST /echo HTTP/1.1\r\nHost: h\r\n"
#define CHUNKED POST "Transfer-Encoding: chunked\r\n\r\n"
/* Must never be seen by a handler. */
#define SMUGGLED "GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n"

#define OPEN true
#define SHUT false

#define R(text_, statuses_, kept_, requests_)                                                      \
	{                                                                                          \
		.text = (text_), .len = sizeof(text_) - 1, .statuses = (statuses_),                \
		.kept = (kept_), .requests = (requests_)                                           \
	}

static const struct row {
	const char *text;
	size_t len;
	const char *statuses; /* of all answers, in order */
	bool kept;
	size_t requests; /* that a handler saw */
} rows[] = {
	/* good ones */
	R(G, "200", OPEN, 1),
	R("\r\n" G, "200", OPEN, 1),
	R(G G G, "200 200 200", OPEN, 3),
	R("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n", "200", OPEN, 1),
	R("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", "200", OPEN, 1),
	R("DELETE /x HTTP/1.1\r\nHost: h\r\n\r\n", "200", OPEN, 1),
	R("GET http://h/x HTTP/1.1\r\nHost: h\r\n\r\n", "200", OPEN, 1),
	R("GET HTTP://H:80 HTTP/1.1\r\nHost: h:80\r\n\r\n", "200", OPEN, 1),
	R("GET /empty HTTP/1.1\r\nHost: h\r\n\r\n" G, "204 200", OPEN, 2),
	R(POST "Content-Length: 0\r\n\r\n", "200", OPEN, 1),
	R(POST "Content-Length: 5\r\n\r\nhello" G, "200 200", OPEN, 2),
	R(POST "Content-Length: 005 \r\n\r\nhello", "200", OPEN, 1),
	R(POST "Content-Length: \t5 \t \r\n\r\nhello" G, "200 200", OPEN, 2),
	R(POST "Content-Length:5\t\r\n\r\nhello" G, "200 200", OPEN, 2),
	R(POST "Transfer-Encoding:\tchunked\t \r\n\r\n1\r\na\r\n0\r\n\r\n" G, "200 200", OPEN, 2),
	R("GET / HTTP/1.1\r\nHost:\th\t\r\nConnection: close\t\r\n\r\n" SMUGGLED, "200", SHUT, 1),
	R(CHUNKED "1\r\na\r\n0\r\nX: y\r\nExpires: \t b\t\r\nConnection: close\r\n\r\n" G,
	  "200 200", OPEN, 2),
	R(CHUNKED "0\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n" G, "200 200", OPEN, 2),
	R(CHUNKED "0\r\n\r\n", "200", OPEN, 1),
	R(CHUNKED "5\r\nhello\r\n6;a=b\r\n world\r\n0\r\n\r\n" G, "200 200", OPEN, 2),
	R(CHUNKED "1;name\r\na\r\n0;name=\"v w\"\r\n\r\n", "200", OPEN, 1),
	R("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", "200", SHUT, 1),
	R("GET / HTTP/1.1\r\nHost: h\r\nConnection: x , CLOSE\r\n\r\n" SMUGGLED, "200", SHUT, 1),
	R("GET / HTTP/1.1\r\nHost: h\r\nConnection: keep-alive\r\nConnection: close\r\n\r\n", "200",
	  SHUT, 1),
	R("GET / HTTP/1.1\r\nHost: h\r\nConnection: closed\r\n\r\n", "200", OPEN, 1),
	R("GET / HTTP/1.0\r\n\r\n", "200", SHUT, 1),
	R("GET / HTTP/1.0\r\n\r\n" SMUGGLED, "200", SHUT, 1),
	R("GET / HTTP/1.0\r\nHost: h\r\nConnection: Keep-Alive\r\n\r\n", "200", OPEN, 1),
	R("POST /echo HTTP/1.0\r\nContent-Length: 2\r\n\r\nab", "200", SHUT, 1),
	R("GET /stream HTTP/1.1\r\nHost: h\r\n\r\n" G, "200 200", OPEN, 2),
	R("GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "200", SHUT, 1),
	R("HEAD /stream HTTP/1.1\r\nHost: h\r\n\r\n", "200", OPEN, 1),
	R("GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n" G, "200 200",
	  OPEN, 2),
	R("POST /echo HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: foo\r\n"
	  "Content-Length: 3\r\n"
	  "\r\nabc" G,
	  "200 200", OPEN, 2),
	R("GET / HTTP/1.1\r\nHost: h\r\nX: "
	  "\xff\xfe\r\n\r\n",
	  "200", OPEN, 1),
	R("GET /%e2%82%ac HTTP/1.1\r\nHost: [::1]:8001\r\n\r\n", "200", OPEN, 1),

	/* smuggling: length and coding */
	R(POST "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" SMUGGLED, "400",
	  SHUT, 0),
	R(POST "Transfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n0\r\n\r\n" SMUGGLED, "400",
	  SHUT, 0),
	R(POST "Content-Length: 0\r\nContent-Length: 44\r\n\r\n" SMUGGLED, "400", SHUT, 0),
	R(POST "Content-Length: 0\r\nContent-Length: 0\r\n\r\n" SMUGGLED, "400", SHUT, 0),
	R(POST "Content-Length: 0, 44\r\n\r\n" SMUGGLED, "400", SHUT, 0),
	R(POST "Content-Length: -1\r\n\r\n" SMUGGLED, "400", SHUT, 0),
	R(POST "Content-Length: +0\r\n\r\n" SMUGGLED, "400", SHUT, 0),
	R(POST "Content-Length: 0x2c\r\n\r\n" SMUGGLED, "400", SHUT, 0),
	R(POST "Content-Length: 18446744073709551616\r\n\r\n" SMUGGLED, "400", SHUT, 0),
	R(POST "Content-Length: 9223372036854775807\r\n\r\n" SMUGGLED, "413", SHUT, 0),
	R(POST "Content-Length:\r\n\r\n" SMUGGLED, "400", SHUT, 0),
	R(POST "Content-Length : 0\r\n\r\n" SMUGGLED, "400", SHUT, 0),
	R(POST "Content-Length: 0\x0b\r\n\r\n" SMUGGLED, "400", SHUT, 0),
	R(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" SMUGGLED,
	  "400", SHUT, 0),
	R(POST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" SMUGGLED, "501", SHUT, 0),
	R(POST "Transfer-Encoding: gzip\r\n\r\n" SMUGGLED, "501", SHUT, 0),
	R(POST "Transfer-Encoding: identity\r\n\r\n" SMUGGLED, "501", SHUT, 0),
	R(POST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" SMUGGLED, "400", SHUT, 0),
	R(POST "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" SMUGGLED, "400", SHUT, 0),
	R(POST "Transfer-Encoding:\x0b"
	       "chunked\r\n\r\n0\r\n\r\n" SMUGGLED,
	  "400", SHUT, 0),
	R(POST "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" SMUGGLED, "400", SHUT, 0),
	R(POST "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n" SMUGGLED, "400", SHUT, 0),
	R(POST "X: y\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" SMUGGLED, "400", SHUT, 0),
	R(POST "X: y\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" SMUGGLED, "400", SHUT, 0),
	R(POST "X: y\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" SMUGGLED, "400", SHUT, 0),
	R("POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" SMUGGLED, "400",
	  SHUT, 0),

	/* smuggling: chunks. The head was good, so it was seen; the request never was. */
	R(CHUNKED "0\n\r\n" SMUGGLED, "400", SHUT, 0),
	R(CHUNKED "0\r\n\n" SMUGGLED, "400", SHUT, 0),
	R(CHUNKED "5\nhello\r\n0\r\n\r\n" SMUGGLED, "400", SHUT, 0),
	R(CHUNKED "5\r\nhello\n0\r\n\r\n" SMUGGLED, "400", SHUT, 0),
	R(CHUNKED "4\r\nhello\r\n0\r\n\r\n" SMUGGLED, "400", SHUT, 0),
	R(CHUNKED "-1\r\n" SMUGGLED, "400", SHUT, 0),
	R(CHUNKED "0x0\r\n\r\n" SMUGGLED, "400", SHUT, 0),
	R(CHUNKED "0 \r\n\r\n" SMUGGLED, "400", SHUT, 0),
	R(CHUNKED " 0\r\n\r\n" SMUGGLED, "400", SHUT, 0),
	R(CHUNKED "0;\nx\r\n\r\n" SMUGGLED, "400", SHUT, 0),
	R(CHUNKED "0;x=\"\r\n\"\r\n\r\n" SMUGGLED, "400", SHUT, 0),
	R(CHUNKED "0\r\nContent-Length: 44\r\n\r\n" SMUGGLED, "400", SHUT, 0),
	R(CHUNKED "0\r\nTransfer-Encoding: chunked\t\r\n\r\n" SMUGGLED, "400", SHUT, 0),
	R(CHUNKED "0\r\nX: y\r\n z\r\n\r\n" SMUGGLED, "400", SHUT, 0),
	R(CHUNKED "fffffffffffffffe\r\n" SMUGGLED, "413", SHUT, 0),
	R(CHUNKED "10000000000000000\r\n" SMUGGLED, "413", SHUT, 0),
	R(CHUNKED "3\r\nabc\r\n4e1e\r\n" SMUGGLED, "413", SHUT, 0), /* one byte over, with the first
								     */

	/* lines and bytes */
	R("GET / HTTP/1.1\nHost: h\n\n" SMUGGLED, "400", SHUT, 0),
	R("GET / HTTP/1.1\r\nHost: h\n\r\n" SMUGGLED, "400", SHUT, 0),
	R("GET / HTTP/1.1\r\nHost: h\r\n\n" SMUGGLED, "400", SHUT, 0),
	R("GET / HTTP/1.1\rHost: h\r\r" SMUGGLED, "400", SHUT, 0),
	R("GET / HTTP/1.1\r\nHost: h\r\nX: a\0b\r\n\r\n" SMUGGLED, "400", SHUT, 0),
	R("GET /\0 HTTP/1.1\r\nHost: h\r\n\r\n" SMUGGLED, "400", SHUT, 0),
	R("GET / HTTP/1.1\r\nHost: h\r\nX\0: a\r\n\r\n" SMUGGLED, "400", SHUT, 0),
	R("GET / HTTP/1.1\r\nHost: h\r\n: a\r\n\r\n" SMUGGLED, "400", SHUT, 0),
	R("GET / HTTP/1.1\r\nHost: h\r\nX\r\n\r\n" SMUGGLED, "400", SHUT, 0),
	R("GET / HTTP/1.1\r\nHost: h\r\nX: \x1b\r\n\r\n" SMUGGLED, "400", SHUT, 0),
	R("GET / HTTP/1.1\r\nHost: h\r\n\tX: a\r\n\r\n" SMUGGLED, "400", SHUT, 0),
	R("\r\n\r\n" G, "400", SHUT, 0),
	R("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "400", SHUT, 0),

	/* request line */
	R("GET /\r\n\r\n", "400", SHUT, 0),
	R("GET  / HTTP/1.1\r\nHost: h\r\n\r\n", "400", SHUT, 0),
	R("GET / x HTTP/1.1\r\nHost: h\r\n\r\n", "400", SHUT, 0),
	R("GET /\xc3\xa9 HTTP/1.1\r\nHost: h\r\n\r\n", "400", SHUT, 0),
	R("GET / HTTP/1.2\r\nHost: h\r\n\r\n", "505", SHUT, 0),
	R("GET / HTTP/3.0\r\nHost: h\r\n\r\n", "505", SHUT, 0),
	R("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505", SHUT, 0),
	R("GET / HTTP/1\r\nHost: h\r\n\r\n", "400", SHUT, 0),
	R("get / HTTP/1.1\r\nHost: h\r\n\r\n", "501", SHUT, 0),
	R("BREW / HTTP/1.1\r\nHost: h\r\n\r\n" SMUGGLED, "501", SHUT, 0),
	R("CONNECT h:443 HTTP/1.1\r\nHost: h\r\n\r\n" SMUGGLED, "501", SHUT, 0),

	/* targets and hosts */
	R("GET * HTTP/1.1\r\nHost: h\r\n\r\n", "400", SHUT, 0),
	R("GET x HTTP/1.1\r\nHost: h\r\n\r\n", "400", SHUT, 0),
	R("GET /a#b HTTP/1.1\r\nHost: h\r\n\r\n", "400", SHUT, 0),
	R("GET /a/../b HTTP/1.1\r\nHost: h\r\n\r\n", "400", SHUT, 0),
	R("GET /%2e%2e/b HTTP/1.1\r\nHost: h\r\n\r\n", "400", SHUT, 0),
	R("GET /a%2fb HTTP/1.1\r\nHost: h\r\n\r\n", "400", SHUT, 0),
	R("GET /a%5Cb HTTP/1.1\r\nHost: h\r\n\r\n", "400", SHUT, 0),
	R("GET /a%00 HTTP/1.1\r\nHost: h\r\n\r\n", "400", SHUT, 0),
	R("GET /a%ff HTTP/1.1\r\nHost: h\r\n\r\n", "400", SHUT, 0),
	R("GET /a%4 HTTP/1.1\r\nHost: h\r\n\r\n", "400", SHUT, 0),
	R("GET http://other/ HTTP/1.1\r\nHost: h\r\n\r\n", "400", SHUT, 0),
	R("GET http://u@h/ HTTP/1.1\r\nHost: h\r\n\r\n", "400", SHUT, 0),
	R("GET ftp://h/ HTTP/1.1\r\nHost: h\r\n\r\n", "400", SHUT, 0),
	R("GET / HTTP/1.1\r\n\r\n", "400", SHUT, 0),
	R("GET / HTTP/1.1\r\nHost:\r\n\r\n", "400", SHUT, 0),
	R("GET / HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n", "400", SHUT, 0),
	R("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "400", SHUT, 0),
	R("GET / HTTP/1.1\r\nHost: h/x\r\n\r\n", "400", SHUT, 0),
	R("GET / HTTP/1.1\r\nHost: u@h\r\n\r\n", "400", SHUT, 0),

	/* expectations and refusals */
	R(POST "Expect: 200-ok\r\nContent-Length: 2\r\n\r\nab", "417", SHUT, 0),
	R("GET / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n\r\n", "200", OPEN, 1),
	R("POST /echo HTTP/1.0\r\nExpect: nothing\r\nContent-Length: 2\r\n\r\nab", "200", SHUT, 1),
	R(POST "Content-Length: 20001\r\n\r\n" SMUGGLED, "413", SHUT, 0),
	R("POST /refuse HTTP/1.1\r\nHost: h\r\nContent-Length: 44\r\n\r\n" SMUGGLED, "403", SHUT,
	  0),
	R("GET /refuse HTTP/1.1\r\nHost: h\r\n\r\n" G, "403 200", OPEN, 1),
	R("GET /teapot HTTP/1.1\r\nHost: h\r\n\r\n" SMUGGLED, "418", SHUT, 0),
	R("GET /ws HTTP/1.1\r\nHost: h\r\n\r\n", "426", SHUT, 1),

	/* what follows a good request is judged by itself */
	R(G "GET / HTTP/1.1\r\n\r\n" SMUGGLED, "200 400", SHUT, 1),
	R(G G "BAD\n", "200 200 400", SHUT, 2),
	R(POST "Content-Length: 3\r\n\r\nabcd" SMUGGLED, "200 501", SHUT, 1),
};

static void check_answers(struct client *c, const struct row *row)
{
	_buf_ struct buf got = BUF_INIT(1000);
	const char *name = row->text;
	bool head = strncmp(name, "HEAD", 4) == 0;
	struct answer a;

	for (const char *p = row->statuses; p; p = strchr(p + 1, ' ')) {
		do {
			WEB_WAIT(client_answer(c, head, &a) || (c->eof && c->in.len == 0));
		} while (!c->eof && a.status == 100);
		(void)buf_printf(&got, "%s%d", got.len ? " " : "", a.status);
		if (a.status >= 400 && a.status != 403)
			assert_true(a.body_len > 0);
		assert_non_null(answer_header(&a, "Date"));
	}
	if (strcmp(buf_str(&got), row->statuses) != 0)
		fail_msg("%s\nexpected %s, got %s: %s", name, row->statuses, buf_str(&got), a.body);
	if (!row->kept &&
	    !(answer_header(&a, "Connection") && strstr(answer_header(&a, "Connection"), "close")))
		fail_msg("%s\nclosed without saying so", name);
}

static void check_row(const struct row *row, size_t step)
{
	struct client c;
	struct answer a;

	buf_clear(&web.log);
	client_open(&c);
	for (size_t at = 0; at < row->len; at += step) {
		client_send(&c, row->text + at, row->len - at < step ? row->len - at : step);
		web_turn();
	}
	check_answers(&c, row);
	if (row->kept) {
		client_puts(&c, "GET /probe HTTP/1.1\r\nHost: h\r\n\r\n");
		WEB_WAIT(client_answer(&c, false, &a));
		assert_string_equal(a.body, "/probe");
		assert_int_equal(noted("request GET /probe"), 1);
	} else {
		CLIENT_WAIT(&c, c.eof);
		assert_int_equal(c.in.len, 0);
	}
	client_close(&c);
	WEB_WAIT(http_live(&web.http) == 0);
	if (noted("request ") - noted("request GET /probe") != row->requests || noted("/smuggled"))
		fail_msg("%s\nstep %zu, executed:\n%s", row->text, step, buf_str(&web.log));
	/* Every exchange ended, and ended once. */
	if (noted("done ") !=
	    noted("head ") + noted("\nerror ") + (strncmp(buf_str(&web.log), "error ", 6) == 0))
		fail_msg("%s\nbegun and done differ:\n%s", row->text, buf_str(&web.log));
}

TEST(table)
{
	web_init();
	web_listen();
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		check_row(&rows[i], rows[i].len);
		check_row(&rows[i], 1);
		check_row(&rows[i], 7);
	}
	print_message("%zu requests\n", ARRAY_SIZE(rows));
	web_free();
}

/* Send @text, expect one answer with @status and a closed connection. */
static void check_refused(const struct buf *text, int status)
{
	struct client c;
	struct answer a;

	buf_clear(&web.log);
	client_open(&c);
	client_send(&c, text->data, text->len);
	WEB_WAIT(client_answer(&c, false, &a));
	assert_int_equal(a.status, status);
	CLIENT_WAIT(&c, c.eof);
	assert_int_equal(noted("request "), 0);
	client_close(&c);
	WEB_WAIT(http_live(&web.http) == 0);
}

static void fill(struct buf *b, const char *piece, size_t n)
{
	for (size_t i = 0; i < n; i++)
		(void)buf_puts(b, piece);
}

/* Giants of every kind: refused as soon as it is certain, whatever follows. */
TEST(giants)
{
	static const struct {
		const char *head, *piece;
		size_t times;
		int status;
	} giants[] = {
		{ "GET /", "a", 2 << 20, 414 },
		{ "", "M", 2 << 20, 400 },
		{ "GET / HTTP/1.1\r\nHost: h\r\nX: ", "y", 2 << 20, 431 },
		{ "GET / HTTP/1.1\r\nHost: h\r\n", "y", 2 << 20, 431 },
		{ "GET / HTTP/1.1\r\nHost: h\r\n", "a: b\r\n", 10000, 431 },
		/* Declared too large: answered although all of it is sent before it is read. */
		{ POST "Content-Length: 4000000\r\n\r\n", "0123456789", 400000, 413 },
		/* Too large only in sum. */
		{ CHUNKED, "a\r\n0123456789\r\n", 100000, 413 },
		/* Endless chunk lines. */
		{ CHUNKED "1;", "e", 1 << 20, 400 },
		{ CHUNKED, "0", 1 << 20, 400 },
		{ CHUNKED "0\r\n", "a: b\r\n", 100000, 431 },
	};
	_buf_ struct buf b = BUF_INIT(64 << 20);

	web_init();
	web_listen();
	for (size_t i = 0; i < ARRAY_SIZE(giants); i++) {
		buf_clear(&b);
		(void)buf_puts(&b, giants[i].head);
		fill(&b, giants[i].piece, giants[i].times);
		check_refused(&b, giants[i].status);
	}
	web_free();
}

/* As large as it may be is not too large. */
TEST(limits_are_reached)
{
	_buf_ struct buf b = BUF_INIT(1 << 20);
	struct client c;
	struct answer a;

	web_init();
	web_listen();
	client_open(&c);
	(void)buf_puts(&b, POST "Content-Length: 20000\r\n\r\n");
	fill(&b, "0123456789", 2000);
	(void)buf_puts(&b, CHUNKED);
	fill(&b, "4\r\nabcd\r\n", 5000);
	(void)buf_puts(&b, "0\r\n\r\n");
	client_send(&c, b.data, b.len);
	for (int i = 0; i < 2; i++) {
		WEB_WAIT(client_answer(&c, false, &a));
		assert_int_equal(a.status, 200);
		assert_int_equal(a.body_len, 20000);
		assert_memory_equal(a.body, i ? "abcdabcd" : "01234567", 8);
	}

	buf_clear(&b);
	(void)buf_printf(&b, "GET /%0*d HTTP/1.1\r\nHost: h\r\n", 1023, 0);
	(void)buf_printf(&b, "X: %0*d\r\n\r\n", (int)(4096 - b.len - 7), 0);
	assert_int_equal(b.len, 4096);
	client_send(&c, b.data, b.len);
	WEB_WAIT(client_answer(&c, false, &a));
	assert_int_equal(a.status, 200);

	buf_clear(&b);
	(void)buf_puts(&b, "GET / HTTP/1.1\r\nHost: h\r\n");
	fill(&b, "a:b\r\n", HTTP_HEADERS_MAX - 1);
	(void)buf_puts(&b, "\r\n");
	client_send(&c, b.data, b.len);
	WEB_WAIT(client_answer(&c, false, &a));
	assert_int_equal(a.status, 200);
	client_close(&c);
	web_free();
}

/* The fields that a handler sees. */
TEST(request_fields)
{
	struct client c;
	struct answer a;

	web_init();
	web_listen();
	client_open(&c);
	client_puts(&c, "GET http://ex.org/headers?x=%41 HTTP/1.1\r\nHOST: EX.org\r\nAccept:\r\n"
			"X-One: \t 1 2\t \r\n"
			"aCCept: b\r\nX-Empty:  \r\nACCEPT: c\r\nX-Tab: a\tb\r\n\r\n");
	WEB_WAIT(client_answer(&c, false, &a));
	assert_string_equal(a.body, "/headers?x=%41|/headers|x=%41|EX.org\n"
				    "host: [EX.org]\naccept: [, b, c]\nx-one: [1 2]\nx-empty: []\n"
				    "x-tab: [a\tb]\n");
	assert_non_null(strstr(a.head, "X-Extra: one\r\nX-Extra: two\tcaf\xc3\xa9\r\n"));
	assert_string_equal(answer_header(&a, "Content-Type"), "text/plain");
	assert_null(answer_header(&a, "Connection"));

	static const struct {
		const char *query;
		int status;
		const char *value;
	} queries[] = {
		{ "?q=1", 200, "1" },    { "?a=b&q=x%20y+z", 200, "x y z" },
		{ "?%71=1", 200, "1" },  { "?q", 200, "" },
		{ "?q=", 200, "" },      { "", 404, "" },
		{ "?p=1", 404, "" },     { "?q=%zz", 404, "" },
		{ "?q=1&q=2", 404, "" }, { "?q=1&r=%", 404, "" },
		{ "?q=%00", 404, "" },   { "?q=a=b&", 200, "a=b" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(queries); i++) {
		char text[200];

		(void)snprintf(text, sizeof(text), "GET /query%s HTTP/1.1\r\nHost: h\r\n\r\n",
			       queries[i].query);
		client_puts(&c, text);
		WEB_WAIT(client_answer(&c, false, &a));
		assert_int_equal(a.status, queries[i].status);
		assert_string_equal(a.body, queries[i].value);
	}
	client_close(&c);
	web_free();
}

/* The same Content-Length with HEAD, none with 204, and the next answer follows at once. */
TEST(bodiless)
{
	struct client c;
	struct answer a;

	web_init();
	web_listen();
	client_open(&c);
	client_puts(&c, "HEAD /abc HTTP/1.1\r\nHost: h\r\n\r\n");
	WEB_WAIT(client_answer(&c, true, &a));
	assert_string_equal(answer_header(&a, "Content-Length"), "4");
	client_puts(&c, "GET /empty HTTP/1.1\r\nHost: h\r\n\r\n");
	WEB_WAIT(client_answer(&c, false, &a));
	assert_int_equal(a.status, 204);
	assert_null(answer_header(&a, "Content-Length"));
	client_puts(&c, "HEAD /stream HTTP/1.1\r\nHost: h\r\n\r\n");
	WEB_WAIT(client_answer(&c, true, &a));
	assert_string_equal(answer_header(&a, "Transfer-Encoding"), "chunked");
	client_puts(&c, G);
	WEB_WAIT(client_answer(&c, false, &a));
	assert_string_equal(a.body, "/");
	client_close(&c);
	web_free();
}
