/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_conn.c - One HTTP/1.x connection: its states and its input.
 *
 * Theory of operation: input is kept in one buffer and parsed by advance(), one step at a time, as
 * long as the state allows it:
 *
 *   IDLE -> HEAD -> [BODY] -> HANDLING -> IDLE or CLOSING
 *
 * In HANDLING nothing is parsed: pipelined requests stay in the buffer, and reading is paused with
 * the first piece of them. So answers are in order by construction, and a client that pipelines
 * costs one read more than one that does not. (A client that does not pipeline is not paused:
 * reading shows the end of its stream, and no system call is spent.) After an answer the next step
 * is deferred, so one connection gets one request per round of the loop, and other connections and
 * timers get their turn in between. The stack does not grow with the requests. Nor does the output:
 * no further request is parsed before the Linux kernel has taken all of it.
 *
 * An exchange is freed when its response is complete, or when the client is gone; h->x is then
 * NULL, and all code that has called a handler checks it before going on. The connection struct
 * itself outlives every call of a handler, because conn.h calls on_close from the loop only.
 *
 * The end of the client's stream while a request is handled means that the client is gone:
 * half-closing after a request cannot be told from leaving, and work without a reader is to be
 * avoided. The end may come while requests before it still wait for their turn: advance() checks it
 * again when it has parsed all it can.
 */
#include "net/http.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "net/exchange.h"

/* Beyond the largest head: pieces that were read before a pause took effect. */
#define INPUT_SLACK (256 * 1024)

static LIST_HEAD(http_conn_list, http_conn) connections;

size_t http_input_len(const struct http_conn *h)
{
	return h->in.len - h->off;
}

void http_finish(struct http_conn *h)
{
	h->state = HTTP_STATE_CLOSING;
	conn_finish(h->conn);
}

void http_drop(struct http_conn *h, int why)
{
	h->state = HTTP_STATE_CLOSING;
	conn_close(h->conn, why);
}

/* Drop @n bytes of input that were parsed. */
static void take_input(struct http_conn *h, size_t n)
{
	h->off += n;
	if (h->off == h->in.len) {
		buf_clear(&h->in);
		h->off = 0;
	}
}

static void hand_over(struct http_conn *h)
{
	http_deadline(h, 0);
	h->state = HTTP_STATE_HANDLING;
	h->config->on_request(h->x);
}

static void begin_body(struct http_conn *h)
{
	static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
	struct http_exchange *x = h->x;

	h->state = HTTP_STATE_BODY;
	x->body_ns = x->piece_ns = x->pause_ns = conn_loop(h->conn)->now_ns;
	/* A client that did not wait gets no 100. */
	if (x->expects && http_input_len(h) == 0)
		(void)conn_write(h->conn, go_on, sizeof(go_on) - 1);
}

/* The prescan has found the end of a head. */
static void begin_request(struct http_conn *h)
{
	const char *message = NULL;
	int r = request_head(h, &message);

	take_input(h, h->scanned);
	h->scanned = 0;
	if (r < 0) {
		http_drop(h, r);
		return;
	}
	if (r > 0) {
		http_fail(h, r, message);
		return;
	}

	struct http_exchange *x = h->x;

	/* While on_head runs the exchange is the handler's; afterwards the body may be awaited. */
	h->state = HTTP_STATE_HANDLING;
	http_deadline(h, 0);
	h->in_head = true;
	r = h->config->on_head(x);
	h->in_head = false;
	if (h->spent) {
		exchange_free(h->spent);
		h->spent = NULL;
		return; /* answered, or handed to a WebSocket */
	}
	if (h->state != HTTP_STATE_HANDLING || x->status != 0)
		return; /* a large reply, or a stream, is under way */
	if (r != 0)
		http_fail(h, r, "the request was refused");
	else if (!x->on_body && (uint64_t)x->length > h->config->body_max)
		http_fail(h, 413, "the request body is too large");
	else if (x->has_body)
		begin_body(h);
	else
		hand_over(h);
}

static bool step_head(struct http_conn *h)
{
	size_t used;
	enum prescan_result r = prescan_feed(&h->scan, buf_str(&h->in) + h->off + h->scanned,
					     http_input_len(h) - h->scanned, &used);

	h->scanned += used;
	if (r == PRESCAN_MORE)
		return false;
	if (r == PRESCAN_BAD)
		http_fail(h, h->scan.status, h->scan.message);
	else
		begin_request(h);
	return true;
}

/* Hand up a piece of a body that is not kept. False: the exchange does not wait for it any more. */
static bool hand_up(struct http_conn *h)
{
	struct http_exchange *x = h->x;

	if (!x->on_body || x->body.len == 0)
		return true;
	x->piece_ns = conn_loop(h->conn)->now_ns;
	x->on_body(x, x->body.data, x->body.len);
	if (h->x != x || h->state != HTTP_STATE_BODY)
		return false;
	buf_clear(&x->body);
	x->req.body_len = 0;
	return true;
}

/* Give bytes to the body. Return: how many belong to it. */
static size_t feed_body(struct http_conn *h, const char *data, size_t len)
{
	const char *message = NULL;
	size_t used = 0;
	int r = request_body(h, data, len, &used, &message);

	if (r < 0)
		http_drop(h, r);
	else if (r > 0)
		http_fail(h, r, message);
	else if (hand_up(h) && h->x->body_done)
		hand_over(h);
	return used;
}

static bool step(struct http_conn *h)
{
	switch (h->state) {
	case HTTP_STATE_IDLE:
		if (http_input_len(h) == 0)
			return false;
		if (conn_queued(h->conn) > 0) {
			conn_ask_drain(h->conn);
			return false;
		}
		h->state = HTTP_STATE_HEAD;
		h->spoken = true;
		h->begun_ns = clock_now_ns();
		h->scanned = 0;
		prescan_init(&h->scan, h->config->head_max, h->config->target_max);
		return true;
	case HTTP_STATE_HEAD:
		return step_head(h);
	case HTTP_STATE_BODY: {
		size_t len = http_input_len(h);

		if (len == 0 || h->x->body_paused)
			return false;

		/* The handler may upgrade the connection: the buffer is read before it is
		 * called. */
		size_t used = feed_body(h, h->in.data + h->off, len);

		if (h->state != HTTP_STATE_UPGRADED)
			take_input(h, used);
		return true;
	}
	default:
		return false;
	}
}

/* The client has ended its stream, and nothing more can be parsed now. */
static void ended(struct http_conn *h)
{
	switch (h->state) {
	case HTTP_STATE_IDLE:
		if (http_input_len(h) == 0)
			http_finish(h);
		break;
	case HTTP_STATE_HEAD:
		http_fail(h, 400, "the connection was closed inside the head of a request");
		break;
	case HTTP_STATE_BODY:
		http_fail(h, 400, "the connection was closed inside the body of a request");
		break;
	case HTTP_STATE_HANDLING:
		/* A client that half-closed may still read a reply that is being written. */
		if (!h->x->rest)
			http_drop(h, -ECONNRESET);
		break;
	case HTTP_STATE_CLOSING:
	case HTTP_STATE_UPGRADED:
		break;
	}
}

/*
 * Go as far as the input and the state allow, and to the end of one request at most: the next one
 * has to wait for the next round. @h may be freed when this returns.
 */
static void advance(struct http_conn *h)
{
	if (h->advancing)
		return;
	h->advancing = true;
	while (step(h)) {
		if (h->state == HTTP_STATE_IDLE && http_input_len(h) > 0) {
			loop_defer(conn_loop(h->conn), &h->again);
			break;
		}
	}
	if (h->eof && !(h->state == HTTP_STATE_BODY && h->x->body_paused))
		ended(h);
	h->advancing = false;
	http_settle(h);
}

static void on_again(struct deferred *d)
{
	advance(d->arg);
}

static void on_data(struct conn *c, const char *data, size_t len)
{
	struct http_conn *h = conn_user(c);

	if (h->state == HTTP_STATE_CLOSING)
		return;
	if (h->state == HTTP_STATE_BODY && http_input_len(h) == 0 && !h->x->body_paused) {
		/* Straight into the body, without the input buffer. */
		h->advancing = true;

		size_t used = feed_body(h, data, len);

		h->advancing = false;
		data += used;
		len -= used;
	}
	if (h->state == HTTP_STATE_CLOSING)
		return;
	if (h->state != HTTP_STATE_UPGRADED && len > 0) {
		buf_consume(&h->in, h->off);
		h->off = 0;
		if (buf_append(&h->in, data, len) < 0) {
			http_drop(h, -ENOBUFS);
			return;
		}
		if (h->state == HTTP_STATE_HANDLING)
			http_pause(h, true);
	}
	advance(h);
}

static void on_eof(struct conn *c)
{
	struct http_conn *h = conn_user(c);

	h->eof = true;
	ended(h);
}

void http_take_body(struct http_exchange *x,
		    void (*on_body)(struct http_exchange *x, const char *data, size_t len))
{
	x->on_body = on_body;
	buf_init(&x->body, SIZE_MAX / 2); /* one read at a time */
	chunks_init(&x->h->chunks, UINT64_MAX);
}

void http_pause_body(struct http_exchange *x, bool pause)
{
	struct http_conn *h = x->h;
	uint64_t now = conn_loop(h->conn)->now_ns;

	if (x->gone || x->body_paused == pause || h->x != x)
		return;
	x->body_paused = pause;
	if (pause) {
		x->pause_ns = now;
	} else {
		x->body_ns += now - x->pause_ns;
		x->piece_ns = now;
	}
	if (h->state == HTTP_STATE_BODY)
		loop_defer(conn_loop(h->conn), &h->again);
}

static void on_drain(struct conn *c)
{
	struct http_conn *h = conn_user(c);

	if (h->state == HTTP_STATE_HANDLING && h->x->rest)
		response_more(h->x);
	else if (h->state == HTTP_STATE_HANDLING && h->x->on_drain)
		h->x->on_drain(h->x);
	else if (h->state == HTTP_STATE_IDLE)
		advance(h);
}

static void forget(struct http_conn *h)
{
	loop_undefer(conn_loop(h->conn), &h->again);
	LIST_REMOVE(h, link);
	buf_free(&h->in);
	buf_free(&h->out);
}

static void on_close(struct conn *c, int why)
{
	struct http_conn *h = conn_user(c);

	(void)why;
	if (h->x)
		exchange_gone(h->x);
	forget(h);
	if (h->config->on_end)
		h->config->on_end(h->config->arg);
	free(h);
}

void http_detach(struct http_conn *h, struct buf *ret_in)
{
	buf_consume(&h->in, h->off);
	*ret_in = h->in;
	h->in = (struct buf){ .max = 0 };
	forget(h);
	h->state = HTTP_STATE_UPGRADED;
	if (!h->advancing)
		free(h);
}

static const struct conn_ops http_ops = {
	.on_data = on_data,
	.on_drain = on_drain,
	.on_eof = on_eof,
	.on_deadline = http_on_deadline,
	.on_close = on_close,
};

void http_serve(struct conn *c, const struct http_config *config)
{
	struct http_conn *h = calloc(1, sizeof(*h));

	if (!h) {
		conn_close(c, -ENOMEM);
		return;
	}
	h->conn = c;
	h->config = config;
	buf_init(&h->in, config->head_max + INPUT_SLACK);
	buf_init(&h->out, SIZE_MAX / 2);
	h->again = (struct deferred){ .fn = on_again, .arg = h };
	LIST_INSERT_HEAD(&connections, h, link);
	conn_set_ops(c, &http_ops, h);
	http_settle(h);
}

void http_drain(const struct http_config *config)
{
	for (struct http_conn *h = LIST_FIRST(&connections); h; h = LIST_NEXT(h, link)) {
		if (h->config != config)
			continue;
		h->draining = true;
		if (h->state == HTTP_STATE_IDLE && http_input_len(h) == 0)
			http_finish(h);
	}
}

size_t http_live(const struct http_config *config)
{
	size_t n = 0;

	for (const struct http_conn *h = LIST_FIRST(&connections); h; h = LIST_NEXT(h, link))
		n += h->config == config;
	return n;
}
