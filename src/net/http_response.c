/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_response.c - Answers: whole ones and streams.
 *
 * Theory of operation: a head is put together in a scratch buffer of the connection, with a small
 * body behind it, and both are one write. A body that is larger than a piece is copied once, unless
 * its owner keeps it, and is sent piece by piece, each when the Linux kernel has taken almost all
 * of the one before: a client that does not read holds little of our memory. For the handler the
 * reply is finished at once. The handler of a stream stops when http_stream_congested() is true and
 * goes on at on_drain.
 *
 * Whether the connection is kept is decided when the head is written, because the head announces
 * it.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/uio.h>
#include <time.h>

#include "base/clock.h"
#include "base/fd.h"
#include "net/exchange.h"

/* A body up to this goes out with its head; a larger one in pieces of this. */
#define PIECE (16 * 1024)
/* The next piece follows when no more than this is queued. */
#define PIECE_NEXT (4 * 1024)
/* Up to this, a copy into one piece is cheaper than several pieces. */
#define CHUNK_COPY_MAX (16 * 1024)
/* A stream of events sends a comment so often: proxies end a connection that is silent. */
#define ALIVE_NS (15 * CLOCK_NS_PER_S)

static const struct {
	int status;
	const char *text;
} reasons[] = {
	{ 101, "Switching Protocols" },
	{ 200, "OK" },
	{ 201, "Created" },
	{ 202, "Accepted" },
	{ 204, "No Content" },
	{ 206, "Partial Content" },
	{ 301, "Moved Permanently" },
	{ 302, "Found" },
	{ 303, "See Other" },
	{ 304, "Not Modified" },
	{ 307, "Temporary Redirect" },
	{ 308, "Permanent Redirect" },
	{ 400, "Bad Request" },
	{ 401, "Unauthorized" },
	{ 403, "Forbidden" },
	{ 404, "Not Found" },
	{ 405, "Method Not Allowed" },
	{ 406, "Not Acceptable" },
	{ 408, "Request Timeout" },
	{ 409, "Conflict" },
	{ 410, "Gone" },
	{ 411, "Length Required" },
	{ 412, "Precondition Failed" },
	{ 413, "Content Too Large" },
	{ 414, "URI Too Long" },
	{ 415, "Unsupported Media Type" },
	{ 416, "Range Not Satisfiable" },
	{ 417, "Expectation Failed" },
	{ 421, "Misdirected Request" },
	{ 422, "Unprocessable Content" },
	{ 423, "Locked" },
	{ 426, "Upgrade Required" },
	{ 428, "Precondition Required" },
	{ 429, "Too Many Requests" },
	{ 431, "Request Header Fields Too Large" },
	{ 500, "Internal Server Error" },
	{ 501, "Not Implemented" },
	{ 502, "Bad Gateway" },
	{ 503, "Service Unavailable" },
	{ 504, "Gateway Timeout" },
	{ 505, "HTTP Version Not Supported" },
	{ 507, "Insufficient Storage" },
};

static const char *reason_of(int status)
{
	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
		if (reasons[i].status == status)
			return reasons[i].text;
	return ""; /* a reason phrase may be empty */
}

/* The value of Date, made once a second. */
static const char *date_now(void)
{
	static time_t made;
	static char text[64];
	time_t now = time(NULL);
	struct tm tm;

	/* No program with this file calls setlocale(): the names are those of RFC 9110. */
	if (now != made && gmtime_r(&now, &tm) &&
	    strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &tm) > 0)
		made = now;
	return text;
}

static int response_writev(struct http_exchange *x, const struct iovec *iov, size_t n_iov)
{
	struct http_conn *h = x->h;
	size_t len = fd_iov_len(iov, n_iov);
	int r = conn_writev(h->conn, iov, n_iov);

	if (r < 0)
		return r;
	x->bytes_out += len;
	http_watch_write(h);
	return 0;
}

int response_write(struct http_exchange *x, const void *data, size_t len)
{
	struct iovec iov = { .iov_base = (void *)data, .iov_len = len };

	return response_writev(x, &iov, 1);
}

/* Status line and all headers that do not depend on the length. False: the client is gone, or
 * answered. */
static bool begin(struct http_exchange *x, int status, const char *content_type)
{
	struct http_conn *h = x->h;
	struct buf *out = &h->out;

	assert(status >= 200 && status <= 999);
	if (x->gone || x->status != 0 || h->x != x)
		return false;
	h->state = HTTP_STATE_HANDLING; /* the rest of an incomplete body is not read */
	x->status = status;
	x->bodiless = x->is_head || status == 204 || status == 304;
	x->keep = x->req.keep_alive && x->body_done && !x->failed && !h->draining;
	buf_clear(out);
	(void)buf_printf(out, "HTTP/1.1 %d %s\r\nDate: %s\r\n", status, reason_of(status),
			 date_now());
	if (content_type)
		(void)buf_printf(out, "Content-Type: %s\r\n", content_type);
	(void)buf_append(out, x->extra.data, x->extra.len);
	return true;
}

static void put_connection(struct http_exchange *x)
{
	struct buf *out = &x->h->out;

	/* A 426 names the upgrade, and that Upgrade is for this hop only. */
	if (x->status == 426)
		(void)buf_puts(out, x->keep ? "Connection: upgrade\r\n" :
					      "Connection: upgrade, close\r\n");
	else if (!x->keep)
		(void)buf_puts(out, "Connection: close\r\n");
	else if (x->req.http10)
		(void)buf_puts(out, "Connection: keep-alive\r\n");
	(void)buf_puts(out, "\r\n");
}

/* Write the scratch buffer. */
static int write_out(struct http_exchange *x)
{
	struct buf *out = &x->h->out;
	int r = out->err;

	if (r < 0)
		conn_close(x->h->conn, r); /* a part of a message would be worse */
	else
		r = response_write(x, out->data, out->len);
	buf_clear(out);
	return r;
}

/*
 * The connection ended during a write (its queue was full, or memory ran out): conn.h calls
 * on_close later. For the handler the exchange is over now.
 */
static void give_up(struct http_exchange *x, int why)
{
	struct http_conn *h = x->h;

	x->keep = false;
	h->state = HTTP_STATE_CLOSING;
	conn_close(h->conn, why);
	exchange_finish(x);
}

void http_add_header(struct http_exchange *x, const char *name, const char *value)
{
	assert(*name && !strpbrk(name, " \t\r\n:"));
	for (const char *c = value; *c; c++)
		assert((unsigned char)*c >= ' ' ? *c != 0x7f : *c == '\t');
	assert(strcasecmp(name, "content-length") != 0);
	assert(strcasecmp(name, "transfer-encoding") != 0 && strcasecmp(name, "connection") != 0);
	(void)buf_printf(&x->extra, "%s: %s\r\n", name, value);
	assert(!x->extra.err || x->extra.err == -ENOMEM);
}

/* @kept: @body outlives the exchange. */
static void reply(struct http_exchange *x, int status, const char *content_type, const void *body,
		  size_t len, bool kept)
{
	struct buf *out = &x->h->out;

	if (!begin(x, status, content_type))
		return;
	x->on_gone = NULL; /* for the handler it is over */
	if (status != 204 && status != 304)
		(void)buf_printf(out, "Content-Length: %zu\r\n", len);
	put_connection(x);
	if (x->bodiless)
		len = 0;
	if (len <= PIECE)
		(void)buf_append(out, body, len);

	int r = write_out(x);

	if (r == 0 && len > PIECE) {
		if (!kept && (x->rest_copy = malloc(len)))
			body = memcpy(x->rest_copy, body, len);
		if (kept || x->rest_copy) {
			x->rest = body;
			x->rest_len = len;
			response_more(x);
			return;
		}
		r = -ENOMEM;
	}
	if (r < 0)
		give_up(x, r);
	else
		exchange_finish(x);
}

void http_reply(struct http_exchange *x, int status, const char *content_type, const void *body,
		size_t len)
{
	reply(x, status, content_type, body, len, false);
}

void http_reply_kept(struct http_exchange *x, int status, const char *content_type,
		     const void *body, size_t len)
{
	reply(x, status, content_type, body, len, true);
}

void response_more(struct http_exchange *x)
{
	while (x->rest_at < x->rest_len) {
		size_t left = x->rest_len - x->rest_at, n = left < PIECE ? left : PIECE;

		if (conn_queued(x->h->conn) > PIECE_NEXT) {
			conn_ask_drain(x->h->conn); /* on_drain goes on */
			return;
		}

		int r = response_write(x, x->rest + x->rest_at, n);

		if (r < 0) {
			give_up(x, r);
			return;
		}
		x->rest_at += n;
	}
	exchange_finish(x);
}

void http_stream(struct http_exchange *x, int status, const char *content_type)
{
	if (!begin(x, status, content_type))
		return;
	x->streaming = true;
	if (x->req.http10)
		x->keep = false; /* the end of the connection is the end of the body */
	else if (status != 204 && status != 304)
		x->chunked_out = true;
	if (x->chunked_out)
		(void)buf_puts(&x->h->out, "Transfer-Encoding: chunked\r\n");
	put_connection(x);
	if (write_out(x) < 0)
		conn_close(x->h->conn, -ENOBUFS); /* on_gone follows */
}

static void on_alive(struct timer *t);

static void keep_alive(struct http_exchange *x)
{
	struct loop *l = conn_loop(x->h->conn);

	x->alive.fn = on_alive;
	x->alive.arg = x;
	timer_set(l, &x->alive, l->now_ns + ALIVE_NS);
}

static void on_alive(struct timer *t)
{
	struct http_exchange *x = t->arg;

	keep_alive(x);
	if (!http_stream_congested(x))
		(void)sse_comment(x, "");
}

void sse_begin(struct http_exchange *x)
{
	http_stream(x, 200, "text/event-stream; charset=utf-8");
	if (!x->gone && !x->bodiless)
		keep_alive(x);
}

void http_stream_sized(struct http_exchange *x, int status, const char *content_type, uint64_t len)
{
	if (!begin(x, status, content_type))
		return;
	x->streaming = true;
	x->sized_out = true;
	x->stream_left = len;
	(void)buf_printf(&x->h->out, "Content-Length: %llu\r\n", (unsigned long long)len);
	put_connection(x);
	if (write_out(x) < 0)
		conn_close(x->h->conn, -ENOBUFS); /* on_gone follows */
}

/* One chunk: what is small is copied into one piece, which under TLS is one record. */
static int write_chunk(struct http_exchange *x, const struct iovec *iov, size_t n_iov, size_t len)
{
	struct iovec whole[HTTP_PIECES + 2];
	struct buf *out = &x->h->out;
	char head[32];
	int n = snprintf(head, sizeof(head), "%zx\r\n", len);

	whole[0] = (struct iovec){ .iov_base = head, .iov_len = (size_t)n };
	memcpy(whole + 1, iov, n_iov * sizeof(*iov));
	whole[n_iov + 1] = (struct iovec){ .iov_base = "\r\n", .iov_len = 2 };
	if (len > CHUNK_COPY_MAX)
		return response_writev(x, whole, n_iov + 2);
	for (size_t i = 0; i < n_iov + 2; i++)
		(void)buf_append(out, whole[i].iov_base, whole[i].iov_len);
	return write_out(x);
}

int http_stream_writev(struct http_exchange *x, const struct iovec *iov, size_t n_iov)
{
	size_t len = fd_iov_len(iov, n_iov);

	if (x->gone)
		return -EPIPE;
	assert(x->streaming && n_iov <= HTTP_PIECES);
	if (len == 0 || x->bodiless)
		return 0; /* an empty chunk would be the last one */
	assert(!x->sized_out || len <= x->stream_left);
	x->stream_left -= x->sized_out ? len : 0;
	return x->chunked_out ? write_chunk(x, iov, n_iov, len) : response_writev(x, iov, n_iov);
}

int http_stream_write(struct http_exchange *x, const void *data, size_t len)
{
	struct iovec iov = { .iov_base = (void *)data, .iov_len = len };

	return http_stream_writev(x, &iov, 1);
}

int http_stream_lost(struct http_exchange *x, int why)
{
	if (!x->gone)
		conn_close(x->h->conn, why); /* the client has to see that bytes are missing */
	return why;
}

bool http_stream_congested(const struct http_exchange *x)
{
	return !x->gone && conn_congested(x->h->conn);
}

void http_stream_on_drain(struct http_exchange *x, void (*fn)(struct http_exchange *x))
{
	x->on_drain = fn;
}

void http_stream_end(struct http_exchange *x)
{
	if (x->gone)
		return;
	assert(x->streaming);
	if (x->sized_out && !x->bodiless && x->stream_left > 0)
		http_stream_abort(x);
	else if (x->chunked_out && !x->bodiless && response_write(x, "0\r\n\r\n", 5) < 0)
		give_up(x, -ENOBUFS);
	else
		exchange_finish(x);
}

void http_stream_abort(struct http_exchange *x)
{
	if (x->gone)
		return;
	assert(x->streaming);
	x->keep = false;
	/* The client may still read the written bytes; but if the end of the connection is the end
	 * of the body, an orderly end would mean that the body is complete. */
	if (!x->chunked_out)
		give_up(x, -ECONNABORTED);
	else
		exchange_finish(x);
}
