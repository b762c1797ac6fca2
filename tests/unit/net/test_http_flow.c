/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_http_flow.c - A connection over time: order, waiting, stalling, vanishing,
 * draining.
 */
#include "http_kit.h"

#define G "GET / HTTP/1.1\r\nHost: h\r\n\r\n"

static void begin(struct client *c)
{
	web_init();
	web_listen();
	client_open(c);
}

static void end(struct client *c)
{
	client_close(c);
	web_free();
}

static void get(struct client *c, const char *path)
{
	char text[200];

	(void)snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: h\r\n\r\n", path);
	client_puts(c, text);
}

static void expect(struct client *c, const char *body)
{
	struct answer a;

	WEB_WAIT(client_answer(c, false, &a));
	assert_int_equal(a.status, 200);
	assert_string_equal(a.body, body);
}

static void turns(int n)
{
	while (n-- > 0)
		web_turn();
}

/* Close with a reset. */
static void vanish(struct client *c)
{
	struct linger now = { .l_onoff = 1, .l_linger = 0 };

	assert_int_equal(setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
	c->fd = fd_close(c->fd);
}

TEST(pipelined_in_order)
{
	struct client c;

	begin(&c);
	get(&c, "/hold1");
	get(&c, "/now");
	get(&c, "/hold2");
	get(&c, "/stream");
	WEB_WAIT(web.n_held == 1);
	turns(20);
	/* Nothing behind it is even looked at. */
	assert_int_equal(noted("request "), 1);
	release("first");
	expect(&c, "first");
	expect(&c, "/now");
	WEB_WAIT(web.n_held == 1);
	assert_int_equal(noted("request "), 3);
	release("second");
	expect(&c, "second");
	expect(&c, "one two");
	assert_int_equal(noted("done "), 4);
	assert_int_equal(noted("gone "), 0);
	end(&c);
}

/* A thousand behind one that waits: all of them answered, in order, without a stack that grows. */
TEST(pipelined_crowd)
{
	struct client c;
	char text[64];

	begin(&c);
	get(&c, "/hold");
	for (int i = 0; i < 1000; i++) {
		(void)snprintf(text, sizeof(text), "/n%d", i);
		get(&c, text);
	}
	WEB_WAIT(web.n_held == 1);
	turns(50);
	assert_int_equal(noted("request "), 1);
	release("go");
	expect(&c, "go");
	for (int i = 0; i < 1000; i++) {
		(void)snprintf(text, sizeof(text), "/n%d", i);
		expect(&c, text);
	}
	end(&c);
}

static size_t served_at_timer;

static void on_timer(struct timer *t)
{
	(void)t;
	served_at_timer = noted("request GET /n");
}

/* One that pipelines gets one request per round: another connection and a timer have their turn
 * meanwhile. */
TEST(pipelined_is_fair)
{
	struct timer t = { .fn = on_timer };
	struct client c, other;

	begin(&c);
	client_open(&other);
	WEB_WAIT(http_live(&web.http) == 2);
	for (int i = 0; i < 300; i++)
		get(&c, "/n");
	get(&other, "/other");
	served_at_timer = SIZE_MAX;
	timer_set(&web.loop, &t, clock_now_ns());
	WEB_WAIT(noted("request GET /other"));
	assert_true(noted("request GET /n") < 10);
	assert_true(served_at_timer < 10);
	expect(&other, "/other");
	for (int i = 0; i < 300; i++)
		expect(&c, "/n");
	client_close(&other);
	end(&c);
}

/* The end of the stream is seen behind requests that had to wait for their turn. */
TEST(pipelined_and_gone)
{
	struct client c;
	struct answer a;

	begin(&c);
	for (int i = 0; i < 5; i++)
		get(&c, "/n");
	get(&c, "/hold");
	assert_int_equal(shutdown(c.fd, SHUT_WR), 0);
	WEB_WAIT(noted("done GET /hold 0"));
	assert_int_equal(noted("done GET /n 200"), 5);
	assert_int_equal(noted("gone GET /hold"), 1);
	end(&c);

	begin(&c);
	for (int i = 0; i < 5; i++)
		get(&c, "/n");
	client_puts(&c, "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nabc");
	assert_int_equal(shutdown(c.fd, SHUT_WR), 0);
	for (int i = 0; i < 5; i++)
		expect(&c, "/n");
	WEB_WAIT(client_answer(&c, false, &a));
	assert_int_equal(a.status, 400);
	end(&c);
}

/* Turn the server until it has nothing more to do. */
static void quiesce(void)
{
	for (size_t before = SIZE_MAX; before != web.log.len;) {
		before = web.log.len;
		turns(50);
	}
}

/* A client that never reads is not served beyond what the queues hold. */
TEST(pipelined_without_reading)
{
	const size_t total = 4000;
	struct client c;

	begin(&c);
	for (size_t i = 0; i < total; i++)
		get(&c, "/page");
	quiesce();

	size_t served = noted("request ");

	assert_true(served > 0 && served < total / 2);
	/* It reads: everything comes. */
	CLIENT_WAIT(&c, c.in.len > total * 10000);
	CLIENT_WAIT(&c, noted("done GET /page 200") == total);
	assert_false(c.eof);
	end(&c);
}

TEST(client_vanishes)
{
	struct client c;

	/* By an orderly close and by a reset, with and without something pipelined. */
	for (int i = 0; i < 4; i++) {
		begin(&c);
		get(&c, "/hold");
		WEB_WAIT(web.n_held == 1);
		if (i & 1)
			get(&c, "/smuggled");
		turns(5);
		if (i & 2)
			vanish(&c);
		else
			c.fd = fd_close(c.fd);
		WEB_WAIT(web.n_held == 0);
		assert_int_equal(noted("gone GET /hold"), 1);
		assert_int_equal(noted("done GET /hold 0"), 1);
		assert_int_equal(noted("/smuggled"), 0);
		WEB_WAIT(http_live(&web.http) == 0);
		end(&c);
	}
}

TEST(vanishes_in_upload)
{
	struct client c;
	struct answer a;

	begin(&c);
	client_puts(&c, "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nabc");
	WEB_WAIT(noted("head "));
	vanish(&c);
	WEB_WAIT(http_live(&web.http) == 0);
	assert_int_equal(noted("request "), 0);
	assert_int_equal(noted("done POST /echo 0"), 1);
	end(&c);

	/* A client that only half-closes gets an error with the missing part. */
	static const char *const cut[] = {
		"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nabc",
		"GET / HTTP/1.1\r\nHost"
	};

	for (size_t i = 0; i < ARRAY_SIZE(cut); i++) {
		begin(&c);
		client_puts(&c, cut[i]);
		assert_int_equal(shutdown(c.fd, SHUT_WR), 0);
		WEB_WAIT(client_answer(&c, false, &a));
		assert_int_equal(a.status, 400);
		assert_non_null(strstr(a.body, "closed inside"));
		CLIENT_WAIT(&c, c.eof);
		assert_int_equal(noted("request "), 0);
		end(&c);
	}
}

/* The end of the stream behind complete requests: answered as far as they are answered at once. */
TEST(half_close)
{
	struct client c;

	begin(&c);
	get(&c, "/a");
	get(&c, "/b");
	get(&c, "/big");
	assert_int_equal(shutdown(c.fd, SHUT_WR), 0);
	expect(&c, "/a");
	expect(&c, "/b");
	CLIENT_WAIT(&c, c.eof);
	assert_true(c.in.len > FLOOD_LEN);
	assert_int_equal(noted("gone "), 0);
	end(&c);

	/* Without a request there is no answer. */
	begin(&c);
	assert_int_equal(shutdown(c.fd, SHUT_WR), 0);
	CLIENT_WAIT(&c, c.eof);
	assert_int_equal(web.log.len, 0);
	end(&c);
}

#define EXPECTING(path)                                                                            \
	"POST " path " HTTP/1.1\r\nHost: h\r\nExpect: 100-Continue\r\nContent-Length: 3\r\n\r\n"

TEST(continue)
{
	struct client c;
	struct answer a;

	begin(&c);
	client_puts(&c, EXPECTING("/echo"));
	WEB_WAIT(client_answer(&c, false, &a));
	assert_int_equal(a.status, 100);
	assert_int_equal(noted("request "), 0);
	client_puts(&c, "abc");
	expect(&c, "abc");

	/* A client that does not wait gets no 100. */
	client_puts(&c, EXPECTING("/echo") "abc");
	expect(&c, "abc");
	client_puts(&c, EXPECTING("/echo") "a");
	turns(5);
	client_puts(&c, "bc");
	expect(&c, "abc");

	/* Nor does one that is refused. */
	client_puts(&c, EXPECTING("/refuse"));
	WEB_WAIT(client_answer(&c, false, &a));
	assert_int_equal(a.status, 403);
	CLIENT_WAIT(&c, c.eof);
	end(&c);

	begin(&c);
	client_puts(&c, "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n"
			"Content-Length: 90000\r\n\r\n");
	WEB_WAIT(client_answer(&c, false, &a));
	assert_int_equal(a.status, 413);
	CLIENT_WAIT(&c, c.eof);
	end(&c);
}

/* An answer while the body is still on its way ends the connection, and is read all the same. */
TEST(answer_before_body)
{
	char junk[100000] = { 0 };
	struct client c;
	struct answer a;

	begin(&c);
	client_puts(&c, "POST /early HTTP/1.1\r\nHost: h\r\nContent-Length: 10000\r\n\r\nabc");
	WEB_WAIT(web.n_held == 1);
	turns(5);
	release("enough");
	client_send(&c, junk, sizeof(junk));
	WEB_WAIT(client_answer(&c, false, &a));
	assert_string_equal(a.body, "enough");
	assert_string_equal(answer_header(&a, "Connection"), "close");
	CLIENT_WAIT(&c, c.eof);
	assert_int_equal(noted("request "), 0);
	end(&c);
}

TEST(slow_clients)
{
	static const struct {
		const char *text;
		int status; /* 0: closed without a word */
	} rows[] = {
		{ "", 0 },
		{ "G", 408 },
		{ "GET / HTTP/1.1\r\nHost: h\r\n", 408 },
		{ "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n", 408 },
		{ "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc", 408 },
	};
	struct client c;
	struct answer a;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		web_init();
		web.http.head_ns = web.http.body_ns = web.http.idle_ns = 100 * MS;
		web_listen();
		client_open(&c);
		/* A byte now and then does not help. */
		for (size_t at = 0; at < strlen(rows[i].text); at++) {
			client_send(&c, rows[i].text + at, 1);
			turns(2);
		}
		if (rows[i].status) {
			WEB_WAIT(client_answer(&c, false, &a));
			assert_int_equal(a.status, rows[i].status);
		}
		CLIENT_WAIT(&c, c.eof);
		assert_int_equal(c.in.len, 0);
		assert_int_equal(noted("request "), 0);
		end(&c);
	}
}

/* Drip: each byte comes well before any deadline, the whole does not. */
TEST(dripping_head)
{
	struct client c;
	struct answer a;
	uint64_t began;

	web_init();
	web.http.head_ns = 300 * MS;
	web_listen();
	client_open(&c);
	client_puts(&c, "GET / HTTP/1.1\r\nHost: h\r\nX: ");
	began = clock_now_ns();
	WEB_WAIT((client_puts(&c, "y"), (void)usleep(5000), client_answer(&c, false, &a)));
	assert_int_equal(a.status, 408);
	assert_true(clock_now_ns() - began < 50 * CLOCK_NS_PER_S);
	end(&c);
}

/* A request that is being worked on has no deadline of ours; the connection is idle only
 * afterwards. */
TEST(work_takes_its_time)
{
	struct client c;
	uint64_t until;

	web_init();
	web.http.head_ns = web.http.body_ns = web.http.idle_ns = web.http.write_ns = 50 * MS;
	web_listen();
	client_open(&c);
	get(&c, "/hold");
	WEB_WAIT(web.n_held == 1);
	until = clock_now_ns() + 200 * MS;
	WEB_WAIT(clock_now_ns() > until);
	release("late");
	expect(&c, "late");
	CLIENT_WAIT(&c, c.eof);
	end(&c);
}

/* A stream without a reader is paused, bounded, and cut off; a large reply too. */
TEST(stalled_reader)
{
	static const char *const paths[] = { "/flood", "/big" };
	int small = 16384;
	struct client c;

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		web_init();
		web.http.write_ns = 200 * MS;
		web_listen();
		client_open(&c);
		assert_int_equal(setsockopt(c.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
		get(&c, paths[i]);
		WEB_WAIT(noted("done "));
		/* The stream's owner learns of it, the reply's has long been done. */
		assert_int_equal(noted("gone GET"), i == 0);
		assert_true(web.flooded < FLOOD_LEN / 2);
		WEB_WAIT(http_live(&web.http) == 0);
		end(&c);
	}
}

/* The same two, read to their end by a slow client. */
TEST(slow_reader)
{
	struct client c;
	size_t sum = 0;

	begin(&c);
	get(&c, "/big");
	CLIENT_WAIT(&c, c.in.len > FLOOD_LEN);
	assert_non_null(strstr(c.in.data, "Content-Length: 25165824\r\n"));
	WEB_WAIT(noted("done GET /big 200"));
	end(&c);

	begin(&c);
	get(&c, "/flood");
	CLIENT_WAIT(&c, c.in.len > 9 && memcmp(c.in.data + c.in.len - 7, "\r\n0\r\n\r\n", 7) == 0);
	for (const char *p = strstr(c.in.data, "\r\n\r\n") + 4;;) {
		char *at;
		size_t n = strtoul(p, &at, 16);

		assert_memory_equal(at, "\r\n", 2);
		if (n == 0)
			break;
		assert_memory_equal(at + 2, "flood", 5);
		sum += n;
		p = at + 2 + n + 2;
	}
	assert_int_equal(sum, web.flooded);
	assert_true(sum >= FLOOD_LEN);
	get(&c, "/after");
	buf_clear(&c.in);
	expect(&c, "/after");
	end(&c);
}

TEST(streams)
{
	struct client c;
	struct answer a;

	begin(&c);
	get(&c, "/stream");
	expect(&c, "one two");
	/* Cut off: no last chunk, and the end of the connection. */
	get(&c, "/abort");
	CLIENT_WAIT(&c, c.eof);
	assert_false(client_answer(&c, false, &a));
	assert_non_null(strstr(buf_str(&c.in), "two\r\n"));
	assert_null(strstr(buf_str(&c.in), "0\r\n\r\n"));
	assert_int_equal(noted("done GET /abort 200"), 1);
	end(&c);

	begin(&c);
	client_puts(&c, "GET /stream HTTP/1.0\r\n\r\n");
	CLIENT_WAIT(&c, c.eof);
	assert_true(client_answer(&c, false, &a));
	assert_string_equal(a.body, "one two");
	assert_null(answer_header(&a, "Transfer-Encoding"));
	end(&c);
}

TEST(events)
{
	struct client c;

	begin(&c);
	get(&c, "/sse");
	expect(&c, "id: 7\nevent: progress\ndata: one\ndata: two\ndata: three\ndata: four\n\n"
		   "data: \n\n"
		   "data: end\ndata: \n\n"
		   ": still\n: here\n\n");
	end(&c);
}

TEST(drain)
{
	struct client idle, busy, begun;
	struct answer a;

	begin(&idle);
	client_open(&busy);
	client_open(&begun);
	get(&idle, "/x");
	expect(&idle, "/x");
	get(&busy, "/hold");
	client_puts(&begun, "GET /y HTTP/1.1\r\n");
	WEB_WAIT(web.n_held == 1 && http_live(&web.http) == 3);
	turns(5);
	listener_stop(web.ls);
	http_drain(&web.http);
	CLIENT_WAIT(&idle, idle.eof);
	release("bye");
	WEB_WAIT(client_answer(&busy, false, &a));
	assert_string_equal(answer_header(&a, "Connection"), "close");
	CLIENT_WAIT(&busy, busy.eof);
	client_puts(&begun, "Host: h\r\n\r\n");
	WEB_WAIT(client_answer(&begun, false, &a));
	assert_string_equal(a.body, "/y");
	assert_string_equal(answer_header(&a, "Connection"), "close");
	CLIENT_WAIT(&begun, begun.eof);
	client_close(&busy);
	client_close(&begun);
	client_close(&idle);
	WEB_WAIT(http_live(&web.http) == 0);
	web_free();
}

/* The server goes away under a request, a stream, and an upload. */
TEST(end_of_server)
{
	struct client c[3];

	begin(&c[0]);
	client_open(&c[1]);
	client_open(&c[2]);
	get(&c[0], "/hold");
	get(&c[1], "/flood");
	client_puts(&c[2], "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n");
	WEB_WAIT(noted("head ") == 3);
	quiesce();
	listener_free(web.ls);
	web.ls = NULL;
	assert_int_equal(noted("gone "), 2);
	assert_int_equal(noted("done "), 3);
	for (size_t i = 0; i < 3; i++)
		client_close(&c[i]);
	web_free();
}
