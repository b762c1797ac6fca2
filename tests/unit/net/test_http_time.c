/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_http_time.c - Deadlines of HTTP and WebSocket to the nanosecond, on a connection whose clock
 * is ours.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "../../fuzz/fake_conn.h"
#include "../unit.h"
#include "base/clock.h"
#include "net/http.h"
#include "net/ws.h"

#define S CLOCK_NS_PER_S

static struct {
	struct http_exchange *x; /* held */
	int status, done, gone, closed;
	char message[100];
} seen;

static int on_head(struct http_exchange *x)
{
	(void)x;
	return 0;
}

static void on_gone(struct http_exchange *x)
{
	assert_ptr_equal(x, seen.x);
	seen.gone++;
	seen.x = NULL;
	/* Too late, and harmless. */
	http_reply(x, 200, NULL, "x", 1);
	http_stream_end(x);
	http_stream_abort(x);
	assert_int_equal(http_stream_write(x, "x", 1), -EPIPE);
}

static void on_request(struct http_exchange *x)
{
	seen.x = x;
	http_set_user(x, NULL, on_gone);
}

static bool mute; /* on_error forgets to answer */

static void on_error(struct http_exchange *x, int status, const char *message)
{
	assert_ptr_equal(http_config_of(x)->on_error, on_error);
	if (mute)
		return;
	(void)snprintf(seen.message, sizeof(seen.message), "%s", message);
	http_reply(x, status, NULL, message, strlen(message));
}

static void on_done(struct http_exchange *x)
{
	seen.status = http_status(x);
	seen.done++;
	assert_int_equal(http_status(x) == 0, http_bytes_out(x) == 0);
	assert_non_null(http_conn(x));
}

static const struct http_config config = {
	.head_max = 1000,
	.target_max = 100,
	.body_max = 1 << 20,
	.head_ns = 10 * S,
	.body_ns = 60 * S,
	.body_min_rate = 1000,
	.idle_ns = 100 * S,
	.write_ns = 20 * S,
	.on_head = on_head,
	.on_request = on_request,
	.on_error = on_error,
	.on_done = on_done,
};

/* The clock of http_conn.c for the beginning of a head is the real one; begin where it is. */
static void begin(struct conn *c)
{
	memset(&seen, 0, sizeof(seen));
	fake_init(c);
	c->loop.now_ns = clock_now_ns();
	http_serve(c, &config);
}

static void end(struct conn *c)
{
	fake_end(c);
	assert_int_equal(http_live(&config), 0);
}

static void deliver(struct conn *c, const char *text)
{
	assert_true(fake_deliver(c, text, strlen(text)));
}

static void answer(struct conn *c, const char *text, size_t len)
{
	struct http_exchange *x = seen.x;

	seen.x = NULL;
	http_reply(x, 200, NULL, text, len);
	fake_deferred(c);
}

/* While an answer waits to be read, no further request is begun, and little of the answer is
 * queued. */
TEST(unread_answers)
{
	static const char body[200000] = "large";
	struct http_exchange *x;
	struct conn c;

	begin(&c);
	c.stalled = true;
	deliver(&c, "GET /1 HTTP/1.1\r\nHost: h\r\n\r\nGET /2 HTTP/1.1\r\nHost: h\r\n\r\n"
		    "GET /3 HTTP/1.1\r\nHost: h\r\n\r\n");
	answer(&c, "small", 5);
	assert_null(seen.x);
	fake_read(&c, 10);
	assert_null(seen.x);
	fake_read(&c, conn_queued(&c));
	assert_non_null(seen.x);
	x = seen.x;
	seen.x = NULL;
	http_reply_kept(x, 200, NULL, body, sizeof(body));
	while (conn_queued(&c) > 0) {
		assert_true(conn_queued(&c) <= 24 * 1024);
		assert_null(seen.x);
		fake_read(&c, 10000);
	}
	assert_true(c.out.len > sizeof(body));
	assert_int_equal(seen.done, 2);
	assert_non_null(seen.x);
	assert_string_equal(http_request(seen.x)->path, "/3");
	answer(&c, "last", 4);
	end(&c);
}

/* A client that has sent nothing yet has less time; one byte begins a head, and an answer the time
 * between requests. */
TEST(first)
{
	struct http_config strict = config;
	struct conn c;

	strict.first_ns = 7 * S;
	memset(&seen, 0, sizeof(seen));
	fake_init(&c);
	c.loop.now_ns = clock_now_ns();
	http_serve(&c, &strict);
	fake_time(&c, 7 * S - 1);
	assert_true(fake_open(&c));
	fake_time(&c, 1);
	assert_true(c.closed);
	assert_int_equal(c.why, 0);
	assert_int_equal(c.out.len, 0);
	fake_end(&c);

	fake_init(&c);
	c.loop.now_ns = clock_now_ns();
	http_serve(&c, &strict);
	deliver(&c, "G");
	fake_time(&c, 8 * S);
	assert_true(fake_open(&c));
	deliver(&c, "ET / HTTP/1.1\r\nHost: h\r\n\r\n");
	answer(&c, "x", 1);
	fake_time(&c, 99 * S);
	assert_true(fake_open(&c));
	fake_time(&c, 1 * S);
	assert_true(c.closed);
	fake_end(&c);
	assert_int_equal(http_live(&strict), 0);
}

TEST(idle)
{
	struct conn c;

	begin(&c);
	fake_time(&c, 100 * S - 1);
	assert_true(fake_open(&c));
	fake_time(&c, 1);
	assert_true(c.closed);
	assert_int_equal(c.why, 0);
	assert_int_equal(c.out.len, 0);
	end(&c);

	/* Each answer begins it anew. */
	begin(&c);
	for (int i = 0; i < 3; i++) {
		fake_time(&c, 99 * S);
		c.loop.now_ns = clock_now_ns();
		deliver(&c, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
		answer(&c, "x", 1);
		assert_true(fake_open(&c));
	}
	fake_time(&c, 100 * S);
	assert_true(c.closed);
	end(&c);
}

TEST(head)
{
	struct conn c;

	begin(&c);
	deliver(&c, "GET / HTTP/1.1\r\n");
	for (int i = 0; i < 9; i++) {
		fake_time(&c, S);
		deliver(&c, "x");
		assert_true(fake_open(&c));
	}
	fake_time(&c, S + S / 100);
	assert_int_equal(seen.status, 408);
	assert_non_null(strstr(seen.message, "head"));
	assert_true(c.finished);
	end(&c);
}

static void send_body(struct conn *c, size_t n)
{
	char data[10000] = { 0 };

	assert_true(n <= sizeof(data));
	assert_true(fake_deliver(c, data, n));
}

#define UPLOAD "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n"

/* Five seconds of grace, then a thousand bytes for each second since the beginning. */
TEST(body_rate)
{
	struct conn c;

	begin(&c);
	deliver(&c, UPLOAD);
	fake_time(&c, 5 * S - 1);
	assert_true(fake_open(&c));
	fake_time(&c, 1);
	assert_int_equal(seen.status, 408);
	assert_non_null(strstr(seen.message, "body"));
	end(&c);

	/* Fast enough for ten seconds, then silent. */
	begin(&c);
	deliver(&c, UPLOAD);
	for (int i = 0; i < 10; i++) {
		send_body(&c, 1100);
		fake_time(&c, S);
		assert_true(fake_open(&c));
	}
	fake_time(&c, S - 1);
	assert_true(fake_open(&c));
	fake_time(&c, 1);
	assert_int_equal(seen.status, 408);
	end(&c);

	/* Always a little too slow. */
	begin(&c);
	deliver(&c, UPLOAD);
	for (int i = 0; i < 20 && fake_open(&c); i++) {
		send_body(&c, 900);
		fake_time(&c, S);
	}
	assert_int_equal(seen.status, 408);
	end(&c);
}

/* Never too slow, but not done in time. */
TEST(body_whole)
{
	struct conn c;

	begin(&c);
	deliver(&c, UPLOAD);
	for (int i = 0; i < 59; i++) {
		send_body(&c, 5000);
		fake_time(&c, S);
		assert_true(fake_open(&c));
	}
	fake_time(&c, S);
	assert_int_equal(seen.status, 408);
	end(&c);
}

/* A client that reads something now and then may take as long as it likes; one that does not,
 * may not. */
TEST(write_progress)
{
	static char page[3 << 20];
	struct conn c;

	begin(&c);
	c.stalled = true;
	deliver(&c, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
	fake_time(&c, 3600 * S); /* the handler takes its time */
	assert_true(fake_open(&c));
	answer(&c, page, sizeof(page));
	for (int i = 0; i < 100; i++) {
		fake_time(&c, 15 * S);
		fake_read(&c, 1000);
		assert_true(fake_open(&c));
	}
	assert_int_equal(seen.done, 0);
	fake_time(&c, 40 * S);
	assert_true(c.closed);
	assert_int_equal(c.why, -ETIMEDOUT);
	assert_int_equal(seen.gone, 0); /* for its handler it was over */
	fake_end(&c);
	assert_int_equal(seen.done, 1);

	/* Read to the end it is kept, and then idle. */
	begin(&c);
	c.stalled = true;
	deliver(&c, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
	answer(&c, page, sizeof(page));
	while (conn_queued(&c) > 0) {
		fake_time(&c, 15 * S);
		fake_read(&c, 100000);
	}
	assert_true(fake_open(&c));
	assert_int_equal(seen.done, 1);
	assert_int_equal(seen.status, 200);
	fake_time(&c, 120 * S);
	assert_true(c.closed);
	end(&c);
}

/* The same for a stream whose producer waits for the signal to continue. */
TEST(stream_stall)
{
	static char piece[50000];
	struct conn c;

	begin(&c);
	c.stalled = true;
	deliver(&c, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
	http_stream(seen.x, 200, "text/plain");
	while (!http_stream_congested(seen.x))
		assert_int_equal(http_stream_write(seen.x, piece, sizeof(piece)), 0);
	fake_time(&c, 19 * S);
	fake_read(&c, 512);
	fake_time(&c, 20 * S);
	assert_true(fake_open(&c));
	/* A byte now and then does not count as reading. */
	fake_read(&c, 511);
	fake_time(&c, 20 * S);
	assert_true(c.closed);
	assert_int_equal(seen.gone, 0);
	end(&c);
	assert_int_equal(seen.gone, 1);
	assert_int_equal(seen.status, 200);
}

/* The connection stops a producer that does not pause, and notifies it. */
TEST(stream_overrun)
{
	static char piece[50000];
	struct conn c;
	int r = 0;

	begin(&c);
	c.stalled = true;
	deliver(&c, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
	http_stream(seen.x, 200, "text/plain");
	while (r == 0)
		r = http_stream_write(seen.x, piece, sizeof(piece));
	assert_int_equal(r, -ENOBUFS);
	assert_true(c.closed);
	end(&c);
	assert_int_equal(seen.gone, 1);
}

/* A handler of errors that does not answer is not waited for. */
TEST(mute_on_error)
{
	struct conn c;

	begin(&c);
	mute = true;
	deliver(&c, "GET / HTTP/9.9\r\n");
	mute = false;
	assert_true(c.finished);
	assert_int_equal(seen.status, 505);
	assert_non_null(strstr(c.out.data, "only HTTP/1.0"));
	end(&c);
}

/* The connection ends under a reply: small, large, and at the end of a stream. */
TEST(reply_without_room)
{
	static char page[300000];
	struct conn c;

	begin(&c);
	c.stalled = true;
	c.max = 0;
	deliver(&c, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
	answer(&c, page, 100);
	assert_true(c.closed);
	assert_int_equal(seen.done, 1);
	assert_int_equal(seen.status, 0);
	end(&c);
	assert_int_equal(seen.gone, 0);
	assert_int_equal(seen.done, 1);

	/* The piece after the first has no room. */
	begin(&c);
	c.stalled = true;
	c.high = c.max = 17000;
	deliver(&c, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
	answer(&c, page, sizeof(page));
	assert_true(fake_open(&c));
	fake_read(&c, conn_queued(&c) - 2000);
	assert_true(c.closed);
	assert_int_equal(seen.done, 1);
	end(&c);

	begin(&c);
	deliver(&c, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
	http_stream(seen.x, 200, NULL);
	c.stalled = true;
	c.max = 0;
	http_stream_end(seen.x);
	assert_true(c.closed);
	assert_int_equal(seen.done, 1);
	end(&c);

	begin(&c);
	c.stalled = true;
	c.max = 0;
	deliver(&c, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
	http_stream(seen.x, 200, NULL);
	assert_true(c.closed);
	assert_int_equal(seen.done, 0);
	end(&c);
	assert_int_equal(seen.gone, 1);
}

/* Where the end of the connection is the end of the body, an orderly one would be a lie. */
TEST(abort_http10)
{
	struct conn c;

	begin(&c);
	deliver(&c, "GET / HTTP/1.0\r\n\r\n");
	http_stream(seen.x, 200, NULL);
	assert_int_equal(http_stream_write(seen.x, "part", 4), 0);
	http_stream_abort(seen.x);
	assert_true(c.closed && !c.finished);
	assert_int_equal(c.why, -ECONNABORTED);
	assert_non_null(strstr(c.out.data, "\r\n\r\npart"));
	end(&c);
}

/* A stream whose head promised to keep the connection, when the server is drained meanwhile. */
TEST(drain_under_stream)
{
	struct conn c;

	begin(&c);
	deliver(&c, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
	http_stream(seen.x, 200, NULL);
	http_drain(&config);
	assert_true(fake_open(&c));
	http_stream_end(seen.x);
	assert_true(c.finished);
	end(&c);
}

/* More than a paused connection may ever hand up. */
TEST(disobedient_conn)
{
	static char junk[100000];
	struct conn c;

	begin(&c);
	deliver(&c, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
	for (int i = 0; i < 5 && fake_open(&c); i++)
		c.ops->on_data(&c, junk, sizeof(junk));
	assert_true(c.closed);
	assert_int_equal(c.why, -ENOBUFS);
	end(&c);
	assert_int_equal(seen.gone, 1);
}

static void on_ws_message(struct ws *w, bool text, const char *data, size_t len)
{
	(void)w;
	(void)text;
	(void)data;
	(void)len;
}

static void on_ws_close(struct ws *w, int code)
{
	(void)w;
	seen.closed = code;
}

static const struct ws_ops ws_ops = { .on_message = on_ws_message, .on_close = on_ws_close };

static struct ws *begin_ws(struct conn *c)
{
	struct buf none = BUF_INIT(0);

	memset(&seen, 0, sizeof(seen));
	fake_init(c);

	struct ws *w = ws_new(c, &ws_ops, NULL, 1000);

	assert_non_null(w);
	ws_start(w, &none);
	return w;
}

/* An upgrade that is decided later, when no caller on the stack has the connection. */
TEST(ws_upgrade_later)
{
	struct conn c;

	begin(&c);
	deliver(&c,
		"GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
	assert_true(http_is_ws(seen.x));
	/* Frames that come meanwhile wait. */
	assert_true(fake_deliver(&c, "\x89\x80\0\0\0\0", 6));
	assert_true(c.paused);

	struct ws *w = http_upgrade_ws(seen.x, &ws_ops, NULL, 1000);

	assert_non_null(w);
	assert_ptr_equal(ws_conn(w), &c);
	assert_false(c.paused);
	assert_int_equal(seen.status, 101);
	assert_int_equal(http_live(&config), 0);
	fake_deferred(&c);
	assert_memory_equal(c.out.data + c.out.len - 2, "\x8a\x00", 2);
	fake_end(&c);
	assert_int_equal(seen.closed, 1006);
}

/* Closing resumes reading: the peer's answer must arrive. */
TEST(ws_close_paused)
{
	struct conn c;
	struct ws *w;

	w = begin_ws(&c);
	ws_pause(w, true);
	ws_close(w, 1000, NULL);
	assert_false(c.paused);
	assert_true(fake_deliver(&c, "\x88\x80\0\0\0\0", 6));
	assert_true(c.finished);
	fake_end(&c);
	assert_int_equal(seen.closed, 1000);
}

/* Pings less often than answers are due: quiet in between. */
TEST(ws_times)
{
	struct conn c;
	struct ws *w;

	w = begin_ws(&c);
	ws_set_times(w, &(struct ws_times){ .ping_ns = 100 * S, .pong_ns = 10 * S, .close_ns = S });
	fake_time(&c, 100 * S);
	assert_int_equal(c.out.len, 2);
	assert_true(fake_deliver(&c, "\x8a\x80\0\0\0\0", 6));
	fake_time(&c, 100 * S - 1);
	assert_int_equal(c.out.len, 2);
	fake_time(&c, 1);
	assert_int_equal(c.out.len, 4);
	fake_time(&c, 10 * S);
	assert_true(c.closed);
	fake_end(&c);
}

/* A reason is cut between characters, not inside one. */
TEST(ws_long_reason)
{
	char reason[200];
	struct conn c;

	for (size_t i = 0; i < 99; i++)
		memcpy(reason + 2 * i, "\xc3\xa9", 3);
	ws_close(begin_ws(&c), 1000, reason);
	assert_int_equal((unsigned char)c.out.data[1], 2 + 122);
	fake_end(&c);
}

TEST(ws_ping)
{
	struct conn c;

	(void)begin_ws(&c);
	fake_time(&c, 30 * S - 1);
	assert_int_equal(c.out.len, 0);
	/* Every 30 seconds, as long as it answers within 30. */
	for (size_t i = 1; i <= 5; i++) {
		fake_time(&c, 1);
		assert_int_equal(c.out.len, 2 * i);
		assert_memory_equal(c.out.data + 2 * (i - 1), "\x89\x00", 2);
		fake_time(&c, 30 * S - 2);
		assert_true(fake_deliver(&c, "\x8a\x80\0\0\0\0", 6));
		fake_time(&c, 1);
	}
	fake_time(&c, 1);
	fake_time(&c, 30 * S - 1);
	assert_true(fake_open(&c));
	fake_time(&c, 1);
	assert_true(c.closed);
	fake_end(&c);
	assert_int_equal(seen.closed, 1006);
}

/* A peer that reads slowly has the ping, and the close, late: it is waited for as long as it takes
 * of what is before. */
TEST(ws_slow_reader)
{
	static char page[100000];
	struct conn c;
	struct ws *w;

	w = begin_ws(&c);
	c.stalled = true;
	assert_int_equal(ws_send(w, false, page, sizeof(page)), 0);
	fake_time(&c, 30 * S); /* pinged */
	for (int i = 0; i < 20; i++) {
		fake_read(&c, 1000);
		fake_time(&c, 30 * S);
		assert_true(fake_open(&c));
	}
	assert_true(fake_deliver(&c, "\x8a\x80\0\0\0\0", 6));
	ws_close(w, 1000, "bye");
	for (int i = 0; i < 20; i++) {
		fake_read(&c, 1000);
		fake_time(&c, 5 * S);
		assert_true(fake_open(&c));
	}
	/* It has all of it, and sends nothing. */
	fake_read(&c, c.out.len);
	fake_time(&c, 5 * S);
	assert_true(c.closed);
	fake_end(&c);

	/* It takes nothing any more. */
	w = begin_ws(&c);
	c.stalled = true;
	assert_int_equal(ws_send(w, false, page, sizeof(page)), 0);
	fake_time(&c, 30 * S);
	fake_read(&c, 1000);
	fake_time(&c, 30 * S);
	assert_true(fake_open(&c));
	fake_time(&c, 30 * S);
	assert_true(c.closed);
	assert_int_equal(c.why, -ETIMEDOUT);
	fake_end(&c);
}

/* The daemon does not blame a paused peer, from which it reads nothing. */
TEST(ws_ping_paused)
{
	struct conn c;
	struct ws *w;

	w = begin_ws(&c);
	ws_pause(w, true);
	fake_time(&c, 1000 * S);
	assert_true(fake_open(&c));
	ws_pause(w, false);
	fake_time(&c, 60 * S);
	assert_true(c.closed);
	fake_end(&c);
}

TEST(ws_close_deadline)
{
	struct conn c;

	ws_close(begin_ws(&c), 1000, "bye");
	fake_time(&c, 5 * S - 1);
	assert_true(fake_open(&c));
	fake_time(&c, 1);
	assert_true(c.closed);
	fake_end(&c);
	assert_int_equal(seen.closed, 1006);
}

/* The budget of frames: 2000 at once, 1000 a second for ever, not one more. */
TEST(ws_budget)
{
	static const char pong[] = "\x8a\x80\0\0\0\0";
	struct conn c;

	(void)begin_ws(&c);
	for (int i = 0; i < 2000; i++)
		assert_true(fake_deliver(&c, pong, 6));
	for (int s = 0; s < 20; s++) {
		c.loop.now_ns += S;
		for (int i = 0; i < 1000; i++)
			assert_true(fake_deliver(&c, pong, 6));
	}
	assert_true(fake_open(&c));
	assert_true(fake_deliver(&c, pong, 6));
	assert_true(c.finished);
	assert_memory_equal(c.out.data, "\x88\x11\x03\xf0too many frames", 19);
	fake_end(&c);
	assert_int_equal(seen.closed, 1008);
}
