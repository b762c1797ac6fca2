/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_kit.h - A small HTTP server on loopback that records its requests, and clients for it.
 *
 * Server and clients are one thread: clients are non-blocking, web_turn() lets the server have one
 * round, and WEB_WAIT() turns it until a condition holds. So a test controls the arrival of every
 * byte.
 */
#ifndef CAISSON_TESTS_HTTP_KIT_H
#define CAISSON_TESTS_HTTP_KIT_H

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../unit.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "net/conn.h"
#include "net/http.h"
#include "net/loop.h"
#include "net/ws.h"

#define MS CLOCK_NS_PER_MS
#define FLOOD_LEN (size_t)(24 << 20)

struct web {
	struct loop loop;
	struct listener *ls;
	struct listener_config listen;
	struct http_config http;
	struct sockaddr_in to;
	struct buf log; /* a line for each thing that happened */
	struct http_exchange *held[16];
	size_t n_held, flooded;
	const struct ws_ops *ws_ops;
	struct ws *ws; /* the one that was upgraded last */
};

static struct web web;

static inline void note(const char *what, const struct http_exchange *x, const char *more)
{
	(void)buf_printf(&web.log, "%s %s %s%s%s\n", what, http_request(x)->method,
			 http_request(x)->path, *more ? " " : "", more);
}

static inline size_t noted(const char *text)
{
	size_t n = 0;

	for (const char *p = buf_str(&web.log); (p = strstr(p, text)); p++)
		n++;
	return n;
}

static inline void say(struct http_exchange *x, const char *text)
{
	http_reply(x, 200, "text/plain", text, strlen(text));
}

static inline void on_gone(struct http_exchange *x)
{
	note("gone", x, "");
	for (size_t i = 0; i < web.n_held; i++)
		if (web.held[i] == x)
			web.held[i] = web.held[--web.n_held];
}

/* Answer the request that was held first. */
static inline void release(const char *text)
{
	struct http_exchange *x = web.held[0];

	assert_true(web.n_held > 0);
	memmove(web.held, web.held + 1, --web.n_held * sizeof(struct http_exchange *));
	say(x, text);
}

static inline void flood(struct http_exchange *x)
{
	static const char piece[10000] = "flood";

	while (!http_stream_congested(x) && web.flooded < FLOOD_LEN) {
		if (http_stream_write(x, piece, sizeof(piece)) < 0)
			return;
		web.flooded += sizeof(piece);
	}
	if (web.flooded >= FLOOD_LEN)
		http_stream_end(x);
}

static inline void show_headers(struct http_exchange *x)
{
	const struct http_request *q = http_request(x);
	_buf_ struct buf b = BUF_INIT(1 << 20);

	(void)buf_printf(&b, "%s|%s|%s|%s\n", q->target, q->path, q->query, q->host);
	for (size_t i = 0; i < q->n_headers; i++)
		(void)buf_printf(&b, "%s: [%s]\n", q->headers[i].name, q->headers[i].value);
	http_add_header(x, "X-Extra", "one");
	http_add_header(x, "X-Extra", "two\tcaf\xc3\xa9");
	http_reply(x, 200, "text/plain", b.data, b.len);
}

static inline void send_events(struct http_exchange *x)
{
	http_add_header(x, "Cache-Control", "no-store");
	http_stream(x, 200, "text/event-stream");
	assert_int_equal(sse_event(x, "7", "progress", "one\ntwo\r\nthree\rfour", 19), 0);
	assert_int_equal(sse_event(x, NULL, NULL, "", 0), 0);
	assert_int_equal(sse_event(x, NULL, NULL, "end\n", 4), 0);
	assert_int_equal(sse_comment(x, "still\nhere"), 0);
	assert_int_equal(sse_event(x, "a\nb", NULL, "x", 1), -EINVAL);
	assert_int_equal(sse_event(x, NULL, "a\rb", "x", 1), -EINVAL);
	http_stream_end(x);
}

static inline int on_head(struct http_exchange *x)
{
	const char *path = http_request(x)->path;

	note("head", x, "");
	http_set_user(x, &web, NULL); /* known from now on */
	if (strcmp(path, "/refuse") == 0) {
		http_reply(x, 403, "text/plain", "no", 2);
		return http_status(x);
	}
	if (strcmp(path, "/early") == 0) {
		/* To be answered before its body is complete. */
		web.held[web.n_held++] = x;
		http_set_user(x, &web, on_gone);
	}
	if (strcmp(path, "/teapot") == 0)
		return 418; /* and no answer: on_error is to give one */
	return 0;
}

static inline void answer_stream(struct http_exchange *x, const char *path)
{
	if (strcmp(path, "/flood") == 0) {
		http_set_user(x, &web, on_gone);
		http_stream_on_drain(x, flood);
		http_stream(x, 200, "application/octet-stream");
		flood(x);
		return;
	}
	http_stream(x, 200, "text/plain");
	assert_int_equal(http_stream_write(x, "one ", 4), 0);
	assert_int_equal(http_stream_write(x, "", 0), 0);
	assert_int_equal(http_stream_write(x, "two", 3), 0);
	if (strcmp(path, "/abort") == 0)
		http_stream_abort(x);
	else
		http_stream_end(x);
}

static inline void on_request(struct http_exchange *x)
{
	const struct http_request *q = http_request(x);

	note("request", x, "");
	if (strncmp(q->path, "/hold", 5) == 0) {
		assert_true(web.n_held < ARRAY_SIZE(web.held));
		web.held[web.n_held++] = x;
		http_set_user(x, &web, on_gone);
	} else if (strcmp(q->path, "/stream") == 0 || strcmp(q->path, "/abort") == 0 ||
		   strcmp(q->path, "/flood") == 0) {
		answer_stream(x, q->path);
	} else if (strcmp(q->path, "/echo") == 0) {
		http_reply(x, 200, "application/octet-stream", q->body, q->body_len);
	} else if (strcmp(q->path, "/headers") == 0) {
		show_headers(x);
	} else if (strcmp(q->path, "/sse") == 0) {
		send_events(x);
	} else if (strcmp(q->path, "/empty") == 0) {
		http_reply(x, 204, NULL, NULL, 0);
	} else if (strcmp(q->path, "/big") == 0) {
		char *big = calloc(1, FLOOD_LEN);

		assert_non_null(big);
		http_set_user(x, &web, on_gone);
		http_reply(x, 200, "application/octet-stream", big, FLOOD_LEN);
		free(big);
	} else if (strcmp(q->path, "/page") == 0) {
		static const char page[10000] = "page";

		http_reply(x, 200, "application/octet-stream", page, sizeof(page));
	} else if (strcmp(q->path, "/query") == 0) {
		_buf_ struct buf value = BUF_INIT(1000);
		bool found = http_query(x, "q", &value);

		http_reply(x, found ? 200 : 404, "text/plain", value.data, found ? value.len : 0);
	} else if (strcmp(q->path, "/ws") == 0) {
		web.ws = http_upgrade_ws(x, web.ws_ops, &web, 1 << 16);
	} else {
		say(x, q->path);
	}
}

static inline void on_error(struct http_exchange *x, int status, const char *message)
{
	char text[16];

	(void)snprintf(text, sizeof(text), "%d", status);
	note(http_user(x) ? "late-error" : "error", x, text);
	http_reply(x, status, "text/plain", message, strlen(message));
}

static inline void on_done(struct http_exchange *x)
{
	char text[16];

	(void)snprintf(text, sizeof(text), "%d", http_status(x));
	note("done", x, text);
	assert_true(http_started_ns(x) > 0 && http_started_ns(x) <= clock_now_ns());
}

static inline bool web_accept(struct conn *c, void *arg)
{
	(void)arg;
	http_serve(c, &web.http);
	return true;
}

/* Limits that are easily reached; deadlines that are not. */
static inline void web_init(void)
{
	memset(&web, 0, sizeof(web));
	buf_init(&web.log, 16 << 20);
	assert_int_equal(loop_init(&web.loop, NULL), 0);
	web.listen = (struct listener_config){
		.max_conns = 100,
		.queue_high = 256 << 10,
		.queue_low = 64 << 10,
		.queue_max = 1 << 20,
		.linger_ns = 5 * CLOCK_NS_PER_S,
		.on_accept = web_accept,
	};
	web.http = (struct http_config){
		.head_max = 4096,
		.target_max = 1024,
		.body_max = 20000,
		.head_ns = 30 * CLOCK_NS_PER_S,
		.body_ns = 30 * CLOCK_NS_PER_S,
		.idle_ns = 30 * CLOCK_NS_PER_S,
		.write_ns = 30 * CLOCK_NS_PER_S,
		.on_head = on_head,
		.on_request = on_request,
		.on_error = on_error,
		.on_done = on_done,
	};
}

static inline void web_listen(void)
{
	struct err e = { 0 };
	int fd = listener_tcp("127.0.0.1:0", &e);
	socklen_t len = sizeof(web.to);

	assert_string_equal(e.msg, "");
	assert_int_equal(getsockname(fd, (struct sockaddr *)&web.to, &len), 0);
	assert_int_equal(listener_start(&web.loop, fd, NULL, &web.listen, &web.ls, &e), 0);
}

static inline void web_free(void)
{
	listener_free(web.ls);
	assert_int_equal(http_live(&web.http), 0);
	assert_int_equal(web.n_held, 0);
	assert_int_equal(web.loop.n_timers, 0);
	assert_null(web.loop.deferred);
	loop_free(&web.loop);
	buf_free(&web.log);
}

static inline void web_stop(struct deferred *d)
{
	loop_stop(d->arg);
}

/* One round of the server, without waiting. */
static inline void web_turn(void)
{
	struct deferred d = { .fn = web_stop, .arg = &web.loop };

	loop_defer(&web.loop, &d);
	assert_int_equal(loop_run(&web.loop, NULL), 0);
}

#define WEB_WAIT(condition)                                                                        \
	for (uint64_t end_ = clock_now_ns() + 60 * CLOCK_NS_PER_S; !(condition);) {                \
		if (clock_now_ns() > end_)                                                         \
			fail_msg("waited in vain for: %s\n%s", #condition, buf_str(&web.log));     \
		web_turn();                                                                        \
	}

struct client {
	int fd;
	struct buf in;
	bool eof;
};

static inline void client_open(struct client *c)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&web.to, sizeof(web.to)), 0);
	assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)), 0);
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	*c = (struct client){ .fd = fd };
	buf_init(&c->in, 64 << 20);
}

static inline void client_close(struct client *c)
{
	c->fd = fd_close(c->fd);
	buf_free(&c->in);
}

/* Bytes that the server does not take any more are not an error of the test. */
static inline void client_send(struct client *c, const void *data, size_t len)
{
	const char *p = data;

	while (len > 0) {
		ssize_t n = send(c->fd, p, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EAGAIN) {
			web_turn();
			continue;
		}
		if (n < 0)
			return;
		p += n;
		len -= (size_t)n;
	}
}

static inline void client_puts(struct client *c, const char *text)
{
	client_send(c, text, strlen(text));
}

/* Take what there is. */
static inline void client_recv(struct client *c)
{
	for (;;) {
		char *to = buf_reserve(&c->in, 65536);
		ssize_t n = recv(c->fd, to, 65536, 0);

		assert_non_null(to);
		if (n <= 0) {
			c->eof = c->eof || n == 0 || errno != EAGAIN;
			return;
		}
		buf_commit(&c->in, (size_t)n);
	}
}

#define CLIENT_WAIT(c, condition) WEB_WAIT((client_recv(c), (condition)))

struct answer {
	int status;
	char head[2048];
	char body[65536];
	size_t body_len;
};

/* The value of a header of an answer, or NULL; static. */
static inline const char *answer_header(const struct answer *a, const char *name)
{
	static char value[512];
	size_t len = strlen(name);

	for (const char *p = strchr(a->head, '\n'); p; p = strchr(p + 1, '\n')) {
		if (strncasecmp(p + 1, name, len) == 0 && p[1 + len] == ':') {
			(void)snprintf(value, sizeof(value), "%s", p + 1 + len + 2);
			value[strcspn(value, "\r")] = '\0';
			return value;
		}
	}
	return NULL;
}

/* Decode a chunked body. Return: bytes of @s that it took, 0 when it is not whole. */
static inline size_t dechunk(const char *s, struct answer *a)
{
	const char *p = s;

	for (;;) {
		char *end;
		size_t n = strtoul(p, &end, 16);

		if (end == p || strncmp(end, "\r\n", 2) != 0 || strlen(end + 2) < n + 2)
			return 0;
		p = end + 2;
		assert_true(a->body_len + n < sizeof(a->body));
		memcpy(a->body + a->body_len, p, n);
		a->body_len += n;
		assert_memory_equal(p + n, "\r\n", 2);
		p += n + 2;
		if (n == 0)
			return (size_t)(p - s);
	}
}

/* Take one whole answer off what was received; false when it is not there yet. Text bodies only. */
static inline bool client_answer(struct client *c, bool no_body, struct answer *a)
{
	const char *s, *end;

	client_recv(c);
	s = buf_str(&c->in);
	end = strstr(s, "\r\n\r\n");
	if (!end)
		return false;
	memset(a, 0, sizeof(*a));

	size_t head = (size_t)(end - s) + 4, len = 0, have = c->in.len - head;

	assert_true(head < sizeof(a->head));
	memcpy(a->head, s, head);
	assert_int_equal(sscanf(s, "HTTP/1.1 %d", &a->status), 1);

	const char *length = answer_header(a, "Content-Length");

	if (no_body || a->status < 200 || a->status == 204) {
		len = 0;
	} else if (length) {
		len = strtoul(length, NULL, 10);
		if (have < len)
			return false;
		assert_true(len < sizeof(a->body));
		memcpy(a->body, s + head, len);
		a->body_len = len;
	} else if (answer_header(a, "Transfer-Encoding")) {
		len = dechunk(s + head, a);
		if (len == 0)
			return false;
	} else {
		if (!c->eof)
			return false;
		len = have;
		memcpy(a->body, s + head, len);
		a->body_len = len;
	}
	buf_consume(&c->in, head + len);
	return true;
}

#endif
