/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_http_body.c - Bodies that are handed up as they come, and answers whose length is known
 * before they are: pieces, pauses, ends before the end.
 */
#include "http_kit.h"

#define BIG (size_t)(3 << 20) /* far above body_max */

static struct {
	struct http_exchange *x;
	size_t pieces, bytes, largest;
	bool gone, pause_at_once;
	size_t answer_at; /* answer when so much has come; 0: never */
} up;

static void up_gone(struct http_exchange *x)
{
	(void)x;
	up.gone = true;
	up.x = NULL;
}

static void up_body(struct http_exchange *x, const char *data, size_t len)
{
	assert_ptr_equal(x, up.x);
	for (size_t i = 0; i < len; i++)
		assert_int_equal(data[i], 'a' + (int)((up.bytes + i) % 26));
	up.pieces++;
	up.bytes += len;
	up.largest = len > up.largest ? len : up.largest;
	if (up.answer_at && up.bytes >= up.answer_at) {
		up.x = NULL;
		http_reply(x, 507, "text/plain", "full", 4);
	}
}

static int up_head(struct http_exchange *x)
{
	note("head", x, "");
	if (strcmp(http_request(x)->path, "/up") == 0) {
		up.x = x;
		http_set_user(x, &up, up_gone);
		http_take_body(x, up_body);
		http_pause_body(x, up.pause_at_once);
	}
	return 0;
}

static void sized(struct http_exchange *x, const char *path)
{
	http_stream_sized(x, 200, "text/plain", 10);
	assert_int_equal(http_stream_write(x, "01234", 5), 0);
	if (strcmp(path, "/whole") == 0)
		assert_int_equal(http_stream_write(x, "56789", 5), 0);
	http_stream_end(x);
}

static void up_request(struct http_exchange *x)
{
	const char *path = http_request(x)->path;
	char text[32];

	if (strcmp(path, "/whole") == 0 || strcmp(path, "/short") == 0) {
		sized(x, path);
		return;
	}
	if (strcmp(path, "/up") == 0) {
		assert_int_equal(http_request(x)->body_len, 0);
		up.x = NULL;
	}
	(void)snprintf(text, sizeof(text), "%zu", up.bytes);
	say(x, text);
}

static void begin(struct client *c)
{
	memset(&up, 0, sizeof(up));
	web_init();
	web.http.on_head = up_head;
	web.http.on_request = up_request;
	web_listen();
	client_open(c);
}

static void end(struct client *c)
{
	client_close(c);
	web_free();
}

static void letters(char *to, size_t at, size_t len)
{
	for (size_t i = 0; i < len; i++)
		to[i] = (char)('a' + (at + i) % 26);
}

static void expect(struct client *c, int status, const char *body)
{
	struct answer a;

	WEB_WAIT(client_answer(c, false, &a));
	assert_int_equal(a.status, status);
	assert_string_equal(a.body, body);
}

static void send_body(struct client *c, bool chunked)
{
	static char piece[10000];
	char head[64];

	for (size_t at = 0; at < BIG; at += sizeof(piece)) {
		size_t n = BIG - at < sizeof(piece) ? BIG - at : sizeof(piece);

		letters(piece, at, n);
		(void)snprintf(head, sizeof(head), "%zx\r\n", n);
		if (chunked)
			client_puts(c, head);
		client_send(c, piece, n);
		if (chunked)
			client_puts(c, "\r\n");
	}
	if (chunked)
		client_puts(c, "0\r\n\r\n");
}

static void upload(bool chunked)
{
	struct client c;
	char head[128], want[32];

	begin(&c);
	(void)snprintf(want, sizeof(want), "%zu", BIG);
	for (int i = 0; i < 2; i++) { /* and again on the same connection */
		up.bytes = 0;
		(void)snprintf(head, sizeof(head), "PUT /up HTTP/1.1\r\nHost: h\r\n%s%s\r\n\r\n",
			       chunked ? "Transfer-Encoding: chunked" : "Content-Length: ",
			       chunked ? "" : want);
		client_puts(&c, head);
		send_body(&c, chunked);
		expect(&c, 200, want);
	}
	assert_true(up.pieces > 10 && up.largest < 1 << 20 && !up.gone);
	/* Without one it is the same, only shorter; and what is kept has its maximum as ever. */
	up.bytes = 0;
	client_puts(&c, "PUT /up HTTP/1.1\r\nHost: h\r\n\r\n");
	expect(&c, 200, "0");
	client_puts(&c, "PUT /kept HTTP/1.1\r\nHost: h\r\nContent-Length: 20001\r\n\r\n");
	expect(&c, 413, "the request body is too large");
	end(&c);
}

TEST(any_length)
{
	upload(false);
}

TEST(any_length_chunked)
{
	upload(true);
}

TEST(pauses)
{
	struct client c;

	begin(&c);
	up.pause_at_once = true;
	client_puts(&c, "PUT /up HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabcd");
	WEB_WAIT(up.x);
	for (int i = 0; i < 50; i++)
		web_turn();
	assert_int_equal(up.bytes, 0);
	http_pause_body(up.x, false);
	WEB_WAIT(up.bytes == 4);
	http_pause_body(up.x, true);
	http_pause_body(up.x, true);
	client_puts(&c, "efghij");
	for (int i = 0; i < 50; i++)
		web_turn();
	/* A piece that was read before the pause may still have come: here it was not. */
	assert_int_equal(up.bytes, 4);
	http_pause_body(up.x, false);
	expect(&c, 200, "10");
	end(&c);
}

/* A pause is the handler's time: no deadline of the client's runs out in it. */
TEST(pause_is_not_the_clients_fault)
{
	struct client c;

	begin(&c);
	web.http.body_ns = 50 * MS;
	web.http.body_min_rate = 1000000;
	up.pause_at_once = true;
	client_puts(&c, "PUT /up HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\n");
	WEB_WAIT(up.x);
	uint64_t until = clock_now_ns() + 200 * MS;

	WEB_WAIT(clock_now_ns() > until);
	assert_non_null(up.x);
	http_pause_body(up.x, false);
	client_puts(&c, "abc");
	expect(&c, 200, "3");
	end(&c);
}

TEST(breaks_off)
{
	struct client c;

	begin(&c);
	client_puts(&c, "PUT /up HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc");
	WEB_WAIT(up.bytes == 3);
	assert_int_equal(shutdown(c.fd, SHUT_WR), 0);
	expect(&c, 400, "the connection was closed inside the body of a request");
	assert_true(up.gone);
	client_close(&c);
	client_open(&c);
	up.gone = false;
	up.bytes = 0;
	client_puts(&c, "PUT /up HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
			"3\r\nabc\r\nzz\r\n");
	WEB_WAIT(up.gone);
	assert_int_equal(noted("late-error PUT /up 400"), 2);
	client_close(&c);
	client_open(&c);
	up.gone = false;
	up.bytes = 0;
	client_puts(&c, "PUT /up HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc");
	WEB_WAIT(up.bytes == 3);
	client_close(&c);
	WEB_WAIT(up.gone);
	WEB_WAIT(http_live(&web.http) == 0);
	end(&c);
}

TEST(late_piece)
{
	struct client c;

	begin(&c);
	web.http.body_ns = 50 * MS;
	client_puts(&c, "PUT /up HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc");
	WEB_WAIT(up.gone);
	expect(&c, 408, "the body of the request took too long");
	end(&c);
}

TEST(answered_in_the_middle)
{
	struct client c;

	begin(&c);
	up.answer_at = 100000;
	client_puts(&c, "PUT /up HTTP/1.1\r\nHost: h\r\nContent-Length: 3145728\r\n\r\n");
	send_body(&c, false);
	expect(&c, 507, "full");
	CLIENT_WAIT(&c, c.eof);
	assert_true(up.bytes < BIG && !up.gone);
	end(&c);
}

TEST(sized)
{
	struct client c;
	struct answer a;

	begin(&c);
	for (int i = 0; i < 2; i++) {
		client_puts(&c, "GET /whole HTTP/1.1\r\nHost: h\r\n\r\n");
		WEB_WAIT(client_answer(&c, false, &a));
		assert_string_equal(answer_header(&a, "content-length"), "10");
		assert_null(answer_header(&a, "transfer-encoding"));
		assert_string_equal(a.body, "0123456789");
	}
	client_puts(&c, "HEAD /short HTTP/1.1\r\nHost: h\r\n\r\n");
	WEB_WAIT(client_answer(&c, true, &a));
	assert_string_equal(answer_header(&a, "content-length"), "10");
	/* Less than was promised is not taken for all of it: the connection ends. */
	client_puts(&c, "GET /short HTTP/1.1\r\nHost: h\r\n\r\n");
	CLIENT_WAIT(&c, c.eof);
	assert_null(strstr(buf_str(&c.in), "56789"));
	end(&c);
}
