/* SPDX-License-Identifier: Apache-2.0 */
/* test_answer.c - Answers of servers, whole and in single bytes, and invalid ones. */
#include <errno.h>
#include <string.h>

#include "../unit.h"
#include "base/buf.h"
#include "base/fd.h"
#include "net/http_relay.h"

struct told {
	struct answer a;
	struct buf body;
	unsigned int heads;
	size_t used;
	int end; /* the result of the last call */
};

static void on_head(struct answer *a)
{
	struct told *t = a->arg;

	t->heads++;
}

static void on_body(struct answer *a, const char *data, size_t len)
{
	struct told *t = a->arg;

	assert_true(len > 0);
	(void)buf_append(&t->body, data, len);
}

static const struct answer_ops ops = { on_head, on_body };

static void tell(struct told *t, const char *data, size_t len, size_t step, bool to_head,
		 bool may_switch)
{
	size_t used = 0;

	*t = (struct told){ .body = BUF_INIT(1 << 20) };
	answer_init(&t->a, to_head, may_switch, &ops, t);
	for (size_t at = 0; at < len && t->end == 0; at += step) {
		size_t n = len - at < step ? len - at : step;

		t->end = answer_feed(&t->a, data + at, n, &used);
		t->used += t->end == 1 ? used : n;
	}
	if (t->end == 0)
		t->end = answer_eof(&t->a);
}

static void forget(struct told *t)
{
	answer_free(&t->a);
	buf_free(&t->body);
}

#define OK "HTTP/1.1 200 OK\r\n"

TEST(whole)
{
	static const struct {
		const char *text, *body;
		int status;
		bool has_length;
	} rows[] = {
		{ OK "Content-Length: 5\r\n\r\nhello", "hello", 200, true },
		{ OK "Content-Length: 0\r\n\r\n", "", 200, true },
		{ OK "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n", "hello",
		  200, false },
		{ OK "Transfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\nA: b\r\n\r\n",
		  "hello", 200, false },
		{ "HTTP/1.0 404 Not Found\r\nX: y\r\n\r\nto the end", "to the end", 404, false },
		{ OK "\r\n", "", 200, false },
		{ "HTTP/1.1 204 None\r\n\r\n", "", 204, false },
		{ "HTTP/1.1 304 Same\r\nContent-Length: 77\r\n\r\n", "", 304, true },
		{ "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: x\r\n"
		  "Connection: close\r\n\r\n" OK "Content-Length: 2\r\n\r\nok",
		  "ok", 200, true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		for (size_t step = 1; step < 200; step += 66) {
			struct told t;

			tell(&t, rows[i].text, strlen(rows[i].text), step, false, false);
			assert_int_equal(t.end, 1);
			assert_int_equal(t.heads, 1);
			assert_int_equal(t.a.status, rows[i].status);
			assert_int_equal(t.a.has_length, rows[i].has_length);
			assert_string_equal(buf_str(&t.body), rows[i].body);
			forget(&t);
		}
}

TEST(headers)
{
	static const char text[] = OK
		"X-One:  a b \t\r\nSET-Cookie: 1\r\nset-cookie: 2\r\nEmpty:\r\n\r\n";
	struct told t;

	for (size_t step = 1; step < 100; step += 49) {
		tell(&t, text, sizeof(text) - 1, step, false, false);
		assert_int_equal(t.end, 1);
		assert_int_equal(t.a.n, 4);
		assert_string_equal(answer_name(&t.a, 0), "x-one");
		assert_string_equal(answer_value(&t.a, 0), "a b");
		assert_string_equal(answer_name(&t.a, 1), "set-cookie");
		assert_string_equal(answer_value(&t.a, 2), "2");
		assert_string_equal(answer_header(&t.a, "set-cookie"), "1");
		assert_string_equal(answer_header(&t.a, "empty"), "");
		assert_null(answer_header(&t.a, "none"));
		forget(&t);
	}
}

/* Bytes behind an answer are not its own, and are not examined. */
TEST(end)
{
	static const char text[] = OK "Content-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\r\n";
	struct told t;

	tell(&t, text, sizeof(text) - 1, 1000, false, false);
	assert_int_equal(t.end, 1);
	assert_int_equal(t.used, sizeof(text) - 1 - 19);
	assert_string_equal(buf_str(&t.body), "ok");
	forget(&t);
	tell(&t, text, sizeof(text) - 1, 1000, true, false);
	assert_int_equal(t.end, 1);
	assert_int_equal(t.body.len, 0);
	assert_int_equal(t.a.length, 2);
	forget(&t);
}

TEST(switch)
{
	static const char text[] = "HTTP/1.1 101 Go\r\nUpgrade: x\r\nConnection: upgrade\r\n"
				   "Content-Length: 3\r\n\r\nraw";
	struct told t;

	tell(&t, text, sizeof(text) - 1, 1000, false, true);
	assert_int_equal(t.end, 1);
	assert_int_equal(t.a.status, 101);
	assert_int_equal(t.used, sizeof(text) - 1 - 3);
	assert_int_equal(t.body.len, 0);
	forget(&t);
	tell(&t, text, sizeof(text) - 1, 1000, false, false);
	assert_int_equal(t.end, -EPROTO);
	assert_int_equal(t.heads, 0);
	forget(&t);
}

TEST(refused)
{
	static const char *const rows[] = {
		"",
		"x",
		"SSH-2.0-x\r\n",
		OK,
		OK "X: y\r\n",
		"HTTP/1.1 099 x\r\n\r\n",
		"HTTP/1.1 600 x\r\n\r\n",
		"HTTP/1.1 2000 x\r\n\r\n",
		"HTTP/1.1 101 x\r\n\r\n",
		OK "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
		OK "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		OK "Content-Length: 5x\r\n\r\nhello",
		OK "Transfer-Encoding: gzip\r\n\r\nhello",
		OK "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
		OK "X: a\x01z\r\n\r\n",
		OK "X y: a\r\n\r\n",
		OK ": a\r\n\r\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		for (size_t step = 1; step < 200; step += 66) {
			struct told t;

			tell(&t, rows[i], strlen(rows[i]), step, false, false);
			if (t.end != -EPROTO || t.heads != 0 || !t.a.why)
				fail_msg("row %zu: %d, %u heads", i, t.end, t.heads);
			forget(&t);
		}
}

TEST(broken_off)
{
	static const char *const rows[] = {
		OK "Content-Length: 5\r\n\r\nhell",
		OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
		OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhelloX\r\n0\r\n\r\n",
		OK "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct told t;

		tell(&t, rows[i], strlen(rows[i]), 7, false, false);
		assert_int_equal(t.end, -EPROTO);
		assert_int_equal(t.heads, 1);
		forget(&t);
	}
}

TEST(bounds)
{
	_buf_ struct buf b = BUF_INIT(1 << 20);
	struct told t;

	(void)buf_puts(&b, OK "X: ");
	while (b.len < ANSWER_HEAD_MAX + 1)
		(void)buf_puts(&b, "aaaaaaaa");
	tell(&t, b.data, b.len, 4096, false, false);
	assert_int_equal(t.end, -EPROTO);
	forget(&t);
	buf_clear(&b);
	(void)buf_puts(&b, OK);
	for (size_t i = 0; i < ANSWER_HEADERS_MAX; i++)
		(void)buf_puts(&b, "A: b\r\n");
	size_t fits = b.len;

	(void)buf_puts(&b, "\r\n");
	tell(&t, b.data, b.len, 4096, false, false);
	assert_int_equal(t.end, 1);
	assert_int_equal(t.a.n, ANSWER_HEADERS_MAX);
	forget(&t);
	b.len = fits;
	(void)buf_puts(&b, "A: b\r\n\r\n");
	tell(&t, b.data, b.len, 4096, false, false);
	assert_int_equal(t.end, -EPROTO);
	forget(&t);
}
