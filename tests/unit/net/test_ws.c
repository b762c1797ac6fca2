/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_ws.c - WebSockets over a real socket: handshakes, frames good and bad, floods, closing.
 */
#include "http_kit.h"

#define KEY "dGhlIHNhbXBsZSBub25jZQ=="
#define HANDSHAKE                                                                                  \
	"GET /ws HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"             \
	"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " KEY "\r\n\r\n"

#define MESSAGE_MAX (1 << 16) /* as http_kit.h has it */

static int closes, close_code;
static void (*then)(struct ws *w, const char *data, size_t len); /* further things to do in
								    on_message */

static void on_message(struct ws *w, bool text, const char *data, size_t len)
{
	assert_ptr_equal(ws_user(w), &web);
	assert_int_equal(data[len], '\0');
	(void)buf_printf(&web.log, "%s %zu %.20s\n", text ? "text" : "binary", len, data);
	if (then)
		then(w, data, len);
	else
		assert_int_equal(ws_send(w, text, data, len), 0);
}

static void on_close(struct ws *w, int code)
{
	closes++;
	close_code = code;
	assert_int_equal(ws_send(w, true, "x", 1), -EPIPE);
	if (web.ws == w)
		web.ws = NULL;
}

static const struct ws_ops ops = { .on_message = on_message, .on_close = on_close };

static void begin_plain(struct client *c)
{
	web_init();
	web.ws_ops = &ops;
	closes = close_code = 0;
	then = NULL;
	web_listen();
	client_open(c);
}

static void begin(struct client *c)
{
	struct answer a;

	begin_plain(c);
	client_puts(c, HANDSHAKE);
	WEB_WAIT(client_answer(c, false, &a));
	assert_int_equal(a.status, 101);
	assert_non_null(web.ws);
}

static void end(struct client *c)
{
	client_close(c);
	WEB_WAIT(listener_count(web.ls) == 0);
	web_free();
}

/* A masked frame. */
static void put_frame(struct buf *b, unsigned int first, const void *payload, size_t len)
{
	static const unsigned char mask[4] = { 0x37, 0xfa, 0x21, 0x3d };
	unsigned char head[10] = { (unsigned char)first, 0x80 };
	size_t n = 2;

	if (len < 126) {
		head[1] |= (unsigned char)len;
	} else {
		size_t bytes = len < 65536 ? 2 : 8;

		head[1] |= bytes == 2 ? 126 : 127;
		for (size_t i = 0; i < bytes; i++)
			head[n++] = (unsigned char)(len >> 8 * (bytes - 1 - i));
	}
	(void)buf_append(b, head, n);
	(void)buf_append(b, mask, sizeof(mask));
	for (size_t i = 0; i < len; i++) {
		char byte = (char)(((const unsigned char *)payload)[i] ^ mask[i % 4]);

		(void)buf_append(b, &byte, 1);
	}
}

static void send_frame(struct client *c, unsigned int first, const void *payload, size_t len)
{
	_buf_ struct buf b = BUF_INIT(16 << 20);

	put_frame(&b, first, payload, len);
	client_send(c, b.data, b.len);
}

/* Take one frame off what was received. */
static bool take_frame(struct client *c, unsigned int *first, char *payload, size_t *len)
{
	const unsigned char *p;
	size_t head = 2, n;

	client_recv(c);
	p = (const unsigned char *)buf_str(&c->in);
	if (c->in.len < 2)
		return false;
	assert_true(p[1] < 128); /* a server does not mask */
	n = p[1];
	if (n >= 126) {
		size_t bytes = n == 126 ? 2 : 8;

		head += bytes;
		if (c->in.len < head)
			return false;
		n = 0;
		for (size_t i = 0; i < bytes; i++)
			n = n << 8 | p[2 + i];
	}
	if (c->in.len < head + n)
		return false;
	*first = p[0];
	*len = n;
	assert_true(n <= MESSAGE_MAX);
	memcpy(payload, p + head, n);
	payload[n] = '\0';
	buf_consume(&c->in, head + n);
	return true;
}

static char payload[MESSAGE_MAX + 1];

static void expect_frame(struct client *c, unsigned int first, const char *text, size_t len)
{
	unsigned int got;
	size_t n;

	WEB_WAIT(take_frame(c, &got, payload, &n));
	assert_int_equal(got, first);
	assert_int_equal(n, len);
	assert_memory_equal(payload, text, len);
}

/* A close frame with @code (0: without one), the end of the connection, and what the owner was
 * told. */
static void expect_close(struct client *c, int code, int told)
{
	unsigned int first;
	size_t n;

	WEB_WAIT(take_frame(c, &first, payload, &n));
	assert_int_equal(first, 0x88);
	assert_int_equal(n >= 2 ? (payload[0] & 0xff) << 8 | (payload[1] & 0xff) : 0, code);
	CLIENT_WAIT(c, c->eof);
	assert_int_equal(c->in.len, 0);
	c->fd = fd_close(c->fd);
	WEB_WAIT(closes == 1);
	assert_int_equal(close_code, told);
}

TEST(handshake)
{
	static const struct {
		const char *method, *headers;
		int status;
	} rows[] = {
		{ "GET /ws HTTP/1.1",
		  "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
		  "Sec-WebSocket-Key: " KEY "\r\n",
		  101 },
		{ "GET /ws HTTP/1.1",
		  "upgrade: foo, WebSocket\r\nconnection: keep-alive, UPGRADE\r\n"
		  "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " KEY "\r\n"
		  "Sec-WebSocket-Extensions: permessage-deflate\r\n",
		  101 },
		{ "GET /ws HTTP/1.1", "", 426 },
		{ "GET /ws HTTP/1.1",
		  "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " KEY
		  "\r\n",
		  426 },
		{ "GET /ws HTTP/1.1",
		  "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " KEY
		  "\r\n",
		  426 },
		{ "GET /ws HTTP/1.1",
		  "Upgrade: websockets\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
		  "Sec-WebSocket-Key: " KEY "\r\n",
		  426 },
		{ "GET /ws HTTP/1.1",
		  "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 8\r\n"
		  "Sec-WebSocket-Key: " KEY "\r\n",
		  426 },
		{ "GET /ws HTTP/1.1",
		  "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: " KEY "\r\n",
		  426 },
		{ "GET /ws HTTP/1.1",
		  "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
		  "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " KEY "\r\n",
		  426 },
		{ "GET /ws HTTP/1.1",
		  "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n",
		  400 },
		{ "GET /ws HTTP/1.1",
		  "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
		  "Sec-WebSocket-Key: c2hvcnQ=\r\n",
		  400 },
		{ "GET /ws HTTP/1.1",
		  "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
		  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ!=\r\n",
		  400 },
		{ "GET /ws HTTP/1.1",
		  "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
		  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZR==\r\n",
		  400 },
		{ "GET /ws HTTP/1.1",
		  "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
		  "Sec-WebSocket-Key: " KEY "\r\nSec-WebSocket-Key: " KEY "\r\n",
		  400 },
		{ "POST /ws HTTP/1.1",
		  "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
		  "Sec-WebSocket-Key: " KEY "\r\nContent-Length: 0\r\n",
		  400 },
		{ "GET /ws HTTP/1.0",
		  "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
		  "Sec-WebSocket-Key: " KEY "\r\n",
		  400 },
	};
	struct client c;
	struct answer a;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char text[1000];

		begin_plain(&c);
		(void)snprintf(text, sizeof(text), "%s\r\nHost: h\r\n%s\r\n", rows[i].method,
			       rows[i].headers);
		client_puts(&c, text);
		WEB_WAIT(client_answer(&c, false, &a));
		if (a.status != rows[i].status)
			fail_msg("%s\nexpected %d, got %d", text, rows[i].status, a.status);
		if (a.status == 101) {
			/* The example of RFC 6455, section 1.3; and nothing negotiated. */
			assert_string_equal(answer_header(&a, "Sec-WebSocket-Accept"),
					    "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
			assert_string_equal(answer_header(&a, "Upgrade"), "websocket");
			assert_string_equal(answer_header(&a, "Connection"), "Upgrade");
			assert_null(answer_header(&a, "Sec-WebSocket-Extensions"));
			assert_int_equal(noted("done GET /ws 101"), 1);
			assert_int_equal(http_live(&web.http), 0);
		} else {
			assert_string_equal(answer_header(&a, "Sec-WebSocket-Version"), "13");
			CLIENT_WAIT(&c, c.eof);
			assert_null(web.ws);
		}
		end(&c);
	}
}

/* Frames as [first byte, payload]; what comes back, and with which code it ends. */
#define F(first_, text_)                                                                           \
	{                                                                                          \
		.first = (first_), .text = (text_), .len = sizeof(text_) - 1                       \
	}

struct frame {
	unsigned int first;
	const char *text;
	size_t len;
};

static const struct row {
	const char *name;
	struct frame send[5];
	struct frame back[3]; /* before the close */
	int code, told;       /* of the close frame that comes back, for the owner; 0: none */
} rows[] = {
	{ "text", { F(0x81, "hello") }, { F(0x81, "hello") }, 0, 0 },
	{ "empty text", { F(0x81, "") }, { F(0x81, "") }, 0, 0 },
	{ "binary", { F(0x82, "\0\xff\x80") }, { F(0x82, "\0\xff\x80") }, 0, 0 },
	{ "utf-8",
	  { F(0x81, "\xe2\x82\xac\xf0\x9f\x98\x80") },
	  { F(0x81, "\xe2\x82\xac\xf0\x9f\x98\x80") },
	  0,
	  0 },
	{ "fragments", { F(0x01, "he"), F(0x00, "l"), F(0x80, "lo") }, { F(0x81, "hello") }, 0, 0 },
	{ "empty fragments", { F(0x02, ""), F(0x00, ""), F(0x80, "") }, { F(0x82, "") }, 0, 0 },
	{ "ping", { F(0x89, "x") }, { F(0x8a, "x") }, 0, 0 },
	{ "ping between fragments",
	  { F(0x01, "a"), F(0x89, "p"), F(0x80, "b") },
	  { F(0x8a, "p"), F(0x81, "ab") },
	  0,
	  0 },
	{ "pong nobody asked for", { F(0x8a, "x"), F(0x81, "y") }, { F(0x81, "y") }, 0, 0 },
	{ "utf-8 over fragments",
	  { F(0x01, "\xe2\x82"), F(0x80, "\xac") },
	  { F(0x81, "\xe2\x82\xac") },
	  0,
	  0 },

	{ "close", { F(0x88, "\x03\xe8") }, { { 0 } }, 1000, 1000 },
	{ "close with a reason",
	  { F(0x88, "\x03\xe9"
		    "bye") },
	  { { 0 } },
	  1001,
	  1001 },
	{ "close without a code", { F(0x88, "") }, { { 0 } }, 0, 1005 },
	{ "close of an application", { F(0x88, "\x0f\xa0") }, { { 0 } }, 4000, 4000 },
	{ "messages before a close",
	  { F(0x81, "a"), F(0x81, "b"), F(0x88, "\x03\xe8"), F(0x81, "c") },
	  { F(0x81, "a"), F(0x81, "b") },
	  1000,
	  1000 },

	{ "rsv1", { F(0xc1, "x") }, { { 0 } }, 1002, 1002 },
	{ "rsv2", { F(0xa1, "x") }, { { 0 } }, 1002, 1002 },
	{ "rsv3 on a ping", { F(0x99, "x") }, { { 0 } }, 1002, 1002 },
	{ "opcode 3", { F(0x83, "x") }, { { 0 } }, 1002, 1002 },
	{ "opcode 7", { F(0x87, "x") }, { { 0 } }, 1002, 1002 },
	{ "opcode 11", { F(0x8b, "x") }, { { 0 } }, 1002, 1002 },
	{ "opcode 15", { F(0x8f, "") }, { { 0 } }, 1002, 1002 },
	{ "fragmented ping", { F(0x09, "x") }, { { 0 } }, 1002, 1002 },
	{ "fragmented close", { F(0x08, "\x03\xe8") }, { { 0 } }, 1002, 1002 },
	{ "continuation of nothing", { F(0x80, "x") }, { { 0 } }, 1002, 1002 },
	{ "continuation after the end",
	  { F(0x81, "a"), F(0x80, "x") },
	  { F(0x81, "a") },
	  1002,
	  1002 },
	{ "text between fragments", { F(0x01, "a"), F(0x81, "b") }, { { 0 } }, 1002, 1002 },
	{ "half a code", { F(0x88, "\x03") }, { { 0 } }, 1002, 1002 },
	{ "code 0", { F(0x88, "\0\0") }, { { 0 } }, 1002, 1002 },
	{ "code 999", { F(0x88, "\x03\xe7") }, { { 0 } }, 1002, 1002 },
	{ "code 1005", { F(0x88, "\x03\xed") }, { { 0 } }, 1002, 1002 },
	{ "code 1006", { F(0x88, "\x03\xee") }, { { 0 } }, 1002, 1002 },
	{ "code 2999", { F(0x88, "\x0b\xb7") }, { { 0 } }, 1002, 1002 },
	{ "code 5000", { F(0x88, "\x13\x88") }, { { 0 } }, 1002, 1002 },
	{ "close reason", { F(0x88, "\x03\xe8\xff\xfe") }, { { 0 } }, 1007, 1007 },
	{ "close reason in utf-8",
	  { F(0x88, "\x03\xe8 \xf2\x8c\x8c\x8c \xe2\x82\xac") },
	  { { 0 } },
	  1000,
	  1000 },
	{ "ping, then a breach", { F(0x89, "p"), F(0x83, "x") }, { F(0x8a, "p") }, 1002, 1002 },

	{ "not utf-8", { F(0x81, "\xff") }, { { 0 } }, 1007, 1007 },
	{ "overlong", { F(0x81, "\xc0\xaf") }, { { 0 } }, 1007, 1007 },
	{ "surrogate", { F(0x81, "\xed\xa0\x80") }, { { 0 } }, 1007, 1007 },
	{ "beyond unicode", { F(0x81, "\xf4\x90\x80\x80") }, { { 0 } }, 1007, 1007 },
	{ "cut off character", { F(0x81, "\xe2\x82") }, { { 0 } }, 1007, 1007 },
	{ "broken over fragments", { F(0x01, "\xe2"), F(0x80, "x") }, { { 0 } }, 1007, 1007 },
	{ "not utf-8, early", { F(0x01, "\xff") }, { { 0 } }, 1007, 1007 },
};

static void check_row(const struct row *row, size_t step)
{
	_buf_ struct buf b = BUF_INIT(10000);
	struct client c;

	begin(&c);
	for (size_t i = 0; i < ARRAY_SIZE(row->send) && row->send[i].text; i++)
		put_frame(&b, row->send[i].first, row->send[i].text, row->send[i].len);
	for (size_t at = 0; at < b.len; at += step) {
		client_send(&c, b.data + at, b.len - at < step ? b.len - at : step);
		web_turn();
	}
	print_message("%s\n", row->name);
	for (size_t i = 0; i < ARRAY_SIZE(row->back) && row->back[i].text; i++)
		expect_frame(&c, row->back[i].first, row->back[i].text, row->back[i].len);
	if (row->told) {
		expect_close(&c, row->code, row->told);
	} else {
		assert_int_equal(closes, 0);
		send_frame(&c, 0x81, "alive", 5);
		expect_frame(&c, 0x81, "alive", 5);
		c.fd = fd_close(c.fd);
		WEB_WAIT(closes == 1);
		assert_int_equal(close_code, 1006);
	}
	end(&c);
}

TEST(table)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		check_row(&rows[i], 10000);
		check_row(&rows[i], 1);
	}
}

/* Headers that no frame builder makes. */
TEST(raw_headers)
{
	static const struct {
		const char *name, *bytes;
		size_t len;
		int code;
	} raws[] = {
		{ "unmasked", "\x81\x05hello", 7, 1002 },
		{ "unmasked, empty", "\x81\x00", 2, 1002 },
		{ "long ping", "\x89\xfe\x00\x7e\0\0\0\0", 8, 1002 },
		{ "long close", "\x88\xff\0\0\0\0\0\x01\0\0\0\0\0\0", 14, 1002 },
		{ "not minimal, 16 bits", "\x82\xfe\x00\x05\0\0\0\0hello", 13, 1002 },
		{ "not minimal, 64 bits", "\x82\xff\0\0\0\0\0\0\xff\xff\0\0\0\0", 14, 1002 },
		{ "2^63", "\x82\xff\x80\0\0\0\0\0\0\0\0\0\0\0", 14, 1002 },
		{ "2^64-1", "\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0", 14, 1002 },
		{ "2^63-1", "\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff\0\0\0\0x", 15, 1009 },
		{ "a byte too many", "\x82\xff\0\0\0\0\0\x01\0\x01\0\0\0\0x", 15, 1009 },
	};
	struct client c;

	for (size_t i = 0; i < ARRAY_SIZE(raws); i++) {
		begin(&c);
		print_message("%s\n", raws[i].name);
		client_send(&c, raws[i].bytes, raws[i].len);
		expect_close(&c, raws[i].code, raws[i].code);
		assert_int_equal(noted("binary") + noted("text"), 0);
		end(&c);
	}
}

TEST(message_size)
{
	static char big[MESSAGE_MAX + 1];
	struct client c;

	memset(big, 'x', sizeof(big));
	begin(&c);
	send_frame(&c, 0x81, big, MESSAGE_MAX);
	expect_frame(&c, 0x81, big, MESSAGE_MAX);
	/* The same in two parts; and then one byte more. */
	send_frame(&c, 0x01, big, MESSAGE_MAX - 1);
	send_frame(&c, 0x80, big, 1);
	expect_frame(&c, 0x81, big, MESSAGE_MAX);
	send_frame(&c, 0x01, big, MESSAGE_MAX);
	send_frame(&c, 0x00, big, 0);
	send_frame(&c, 0x80, big, 1);
	expect_close(&c, 1009, 1009);
	end(&c);
}

/* Floods of small frames: 2000 at once are borne, an endless stream is not. */
TEST(floods)
{
	static const struct {
		const char *name;
		unsigned int first, more;
		const char *text;
	} floods[] = {
		{ "pings", 0x89, 0x89, "" },
		{ "pongs", 0x8a, 0x8a, "" },
		{ "one-byte fragments", 0x01, 0x00, "x" },
		{ "empty fragments", 0x02, 0x00, "" },
		{ "empty messages", 0x81, 0x81, "" },
	};
	_buf_ struct buf b = BUF_INIT(16 << 20);
	struct client c;

	for (size_t i = 0; i < ARRAY_SIZE(floods); i++) {
		unsigned int first;
		size_t n;

		print_message("%s\n", floods[i].name);
		begin(&c);
		put_frame(&b, floods[i].first, floods[i].text, strlen(floods[i].text));
		for (int j = 0; j < 200000; j++)
			put_frame(&b, floods[i].more, floods[i].text, strlen(floods[i].text));
		client_send(&c, b.data, b.len);
		buf_clear(&b);
		do {
			WEB_WAIT(take_frame(&c, &first, payload, &n));
		} while (first != 0x88);
		assert_int_equal((payload[0] & 0xff) << 8 | (payload[1] & 0xff), 1008);
		c.fd = fd_close(c.fd);
		WEB_WAIT(closes == 1);
		assert_int_equal(close_code, 1008);
		end(&c);
	}

	begin(&c);
	for (int i = 0; i < 1999; i++)
		put_frame(&b, 0x8a, "", 0);
	put_frame(&b, 0x81, "fine", 4);
	client_send(&c, b.data, b.len);
	expect_frame(&c, 0x81, "fine", 4);
	end(&c);
}

/* Frames that come in the same packet as the handshake are not lost. */
TEST(early_frames)
{
	_buf_ struct buf b = BUF_INIT(10000);
	struct client c;
	struct answer a;

	begin_plain(&c);
	(void)buf_puts(&b, "GET / HTTP/1.1\r\nHost: h\r\n\r\n" HANDSHAKE);
	put_frame(&b, 0x81, "early", 5);
	put_frame(&b, 0x81, "bird", 4);
	client_send(&c, b.data, b.len - 3);
	WEB_WAIT(client_answer(&c, false, &a));
	assert_int_equal(a.status, 200);
	WEB_WAIT(client_answer(&c, false, &a));
	assert_int_equal(a.status, 101);
	expect_frame(&c, 0x81, "early", 5);
	client_send(&c, b.data + b.len - 3, 3);
	expect_frame(&c, 0x81, "bird", 4);
	end(&c);
}

TEST(we_close)
{
	struct client c;

	begin(&c);
	ws_close(web.ws, 1001, "going away");
	assert_int_equal(ws_send(web.ws, true, "x", 1), -EPIPE);
	ws_close(web.ws, 1000, "again");
	expect_frame(&c, 0x88, "\x03\xe9going away", 12);
	/* Its frames under way are dropped; its answer ends it. */
	send_frame(&c, 0x81, "late", 4);
	send_frame(&c, 0x88, "\x03\xe9", 2);
	CLIENT_WAIT(&c, c.eof);
	assert_int_equal(c.in.len, 0);
	c.fd = fd_close(c.fd);
	WEB_WAIT(closes == 1);
	assert_int_equal(close_code, 1001);
	assert_int_equal(noted("late"), 0);
	end(&c);

	/* A peer that does not answer has a deadline. */
	begin(&c);
	ws_set_times(web.ws,
		     &(struct ws_times){ .ping_ns = 3600 * CLOCK_NS_PER_S, .close_ns = 100 * MS });
	ws_close(web.ws, 1000, NULL);
	expect_frame(&c, 0x88, "\x03\xe8", 2);
	WEB_WAIT(closes == 1);
	assert_int_equal(close_code, 1006);
	end(&c);
}

TEST(ping)
{
	struct client c;
	struct ws_times times = { .ping_ns = 60 * MS, .pong_ns = 60 * MS, .close_ns = 60 * MS };

	begin(&c);
	ws_set_times(web.ws, &times);
	for (int i = 0; i < 3; i++) {
		expect_frame(&c, 0x89, "", 0);
		send_frame(&c, 0x8a, "", 0);
	}
	assert_int_equal(closes, 0);
	/* Silence. */
	CLIENT_WAIT(&c, c.eof);
	WEB_WAIT(closes == 1);
	assert_int_equal(close_code, 1006);
	end(&c);
}

static void close_at_once(struct ws *w, const char *data, size_t len)
{
	(void)ws_send(w, true, data, len);
	assert_int_equal(ws_send(w, true, "\xff", 1), -EILSEQ);
	ws_close(w, 4001,
		 "a reason that is longer than what fits into a control frame: it has one hundred "
		 "and twenty-three bytes at most, and then is cut");
}

TEST(close_from_inside)
{
	struct client c;
	unsigned int first;
	size_t n;

	begin(&c);
	then = close_at_once;
	send_frame(&c, 0x81, "one", 3);
	send_frame(&c, 0x81, "two", 3);
	expect_frame(&c, 0x81, "one", 3);
	WEB_WAIT(take_frame(&c, &first, payload, &n));
	assert_int_equal(first, 0x88);
	assert_int_equal(n, 125);
	send_frame(&c, 0x88, "\x0f\xa1", 2);
	CLIENT_WAIT(&c, c.eof);
	c.fd = fd_close(c.fd);
	WEB_WAIT(closes == 1);
	assert_int_equal(close_code, 4001);
	assert_int_equal(noted("text"), 1);
	end(&c);
}

TEST(pause)
{
	struct client c;

	begin(&c);
	ws_pause(web.ws, true);
	send_frame(&c, 0x81, "wait", 4);
	for (int i = 0; i < 20; i++)
		web_turn();
	assert_int_equal(noted("text"), 0);
	ws_pause(web.ws, false);
	expect_frame(&c, 0x81, "wait", 4);

	/* Paused, it is still known when the peer goes. */
	ws_pause(web.ws, true);
	c.fd = fd_close(c.fd);
	WEB_WAIT(closes == 1);
	assert_int_equal(close_code, 1006);
	end(&c);
}

static void pause_at_once(struct ws *w, const char *data, size_t len)
{
	(void)data;
	(void)len;
	ws_pause(w, true);
}

/* Paused in the middle of what was read already: the next message waits as well. */
TEST(pause_from_inside)
{
	_buf_ struct buf b = BUF_INIT(1000);
	struct client c;

	begin(&c);
	then = pause_at_once;
	for (int i = 0; i < 5; i++)
		put_frame(&b, 0x81, "x", 1);
	client_send(&c, b.data, b.len);
	for (size_t i = 1; i <= 5; i++) {
		WEB_WAIT(noted("text") == i);
		for (int j = 0; j < 10; j++)
			web_turn();
		assert_int_equal(noted("text"), i);
		ws_pause(web.ws, false);
	}
	end(&c);
}

static int drained;

static void on_drain(struct ws *w)
{
	(void)w;
	drained++;
}

/* A peer that does not read: the owner is paused and resumed, and everything arrives. */
TEST(congestion)
{
	static const struct ws_ops with_drain = { .on_message = on_message,
						  .on_drain = on_drain,
						  .on_close = on_close };
	static const char piece[10000] = { 1 };
	struct client c;
	struct answer a;
	size_t sent = 0;

	begin_plain(&c);
	drained = 0;
	web.ws_ops = &with_drain;
	client_puts(&c, HANDSHAKE);
	WEB_WAIT(client_answer(&c, false, &a));
	for (; !ws_congested(web.ws); sent++)
		assert_int_equal(ws_send(web.ws, false, piece, sizeof(piece)), 0);
	assert_int_equal(drained, 0);
	for (size_t i = 0; i < sent; i++)
		expect_frame(&c, 0x82, piece, sizeof(piece));
	assert_int_equal(drained, 1);

	/* An owner that ignores the pause is stopped. */
	int r = 0;

	while (r == 0)
		r = ws_send(web.ws, false, piece, sizeof(piece));
	assert_int_equal(r, -ENOBUFS);
	assert_int_equal(ws_send(web.ws, false, piece, 1), -EPIPE);
	WEB_WAIT(closes == 1);
	assert_int_equal(close_code, 1006);
	end(&c);
}

TEST(end_of_server)
{
	struct client c;

	begin(&c);
	listener_free(web.ls);
	web.ls = NULL;
	assert_int_equal(closes, 1);
	assert_int_equal(close_code, 1006);
	client_close(&c);
	web_free();
}
