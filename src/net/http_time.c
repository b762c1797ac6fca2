/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_time.c - The deadlines of a connection, and whether it is read.
 *
 * Theory of operation: a connection has one deadline, which depends on its state:
 *
 * - IDLE: the time to the next request; to the first one it is shorter, since the client is
 *   unknown. With output in the queue, as HANDLING.
 * - HEAD: from the first byte of a head to its last.
 * - BODY: for the whole body, and from five seconds on for its rate. The timer is set to the moment
 *   at which the bytes so far would be too few, and computed again then: bytes that arrive move no
 *   timer. For a body that is not kept, the time between two pieces takes the place of the whole;
 *   there is no deadline while the handler has paused it.
 * - HANDLING: none; but while output is queued, the client has to take some of it from time to
 *   time.
 *
 * http_settle() is called whenever the state machine has come to rest.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "net/exchange.h"

/* An idle connection keeps no more than this of a buffer. */
#define IDLE_BUFFER_MAX 4096
/* How long a body may take to get up to its minimum rate. */
#define RATE_GRACE_NS (5 * CLOCK_NS_PER_S)

/* A client that takes less than this of the queue in config->write_ns does not read, and holds our
 * memory. */
#define WRITE_MIN 512

static uint64_t now_ns(const struct http_conn *h)
{
	return conn_loop(h->conn)->now_ns;
}

void http_deadline(struct http_conn *h, uint64_t at_ns)
{
	if (at_ns == h->deadline_ns)
		return;
	h->deadline_ns = at_ns;
	conn_deadline(h->conn, at_ns);
}

void http_pause(struct http_conn *h, bool pause)
{
	if (h->paused == pause)
		return;
	h->paused = pause;
	conn_pause(h->conn, pause);
}

/* The deadline of the body: for the whole of it, and for its rate. */
static uint64_t body_deadline(const struct http_conn *h)
{
	const struct http_exchange *x = h->x;
	uint64_t rate = h->config->body_min_rate;
	uint64_t whole = (x->on_body ? x->piece_ns : x->body_ns) + h->config->body_ns;

	if (rate == 0)
		return whole;

	uint64_t allowed =
		x->body_seen / rate * CLOCK_NS_PER_S + x->body_seen % rate * CLOCK_NS_PER_S / rate;
	uint64_t slow = x->body_ns + (allowed > RATE_GRACE_NS ? allowed : RATE_GRACE_NS);

	return slow < whole ? slow : whole;
}

void http_watch_write(struct http_conn *h)
{
	if (conn_queued(h->conn) == 0 || h->state == HTTP_STATE_CLOSING ||
	    h->state == HTTP_STATE_BODY)
		return;
	if (h->deadline_ns == 0) {
		(void)conn_moved(h->conn);
		http_deadline(h, now_ns(h) + h->config->write_ns);
	}
}

void http_settle(struct http_conn *h)
{
	bool waiting = http_input_len(h) > 0;

	switch (h->state) {
	case HTTP_STATE_IDLE:
		if (h->eof && !waiting) {
			http_finish(h);
			return;
		}
		http_pause(h, waiting);
		if (waiting) {
			http_deadline(h, 0);
			http_watch_write(h);
			return;
		}
		if (h->in.cap > IDLE_BUFFER_MAX)
			buf_free(&h->in);
		if (h->out.cap > IDLE_BUFFER_MAX)
			buf_free(&h->out);
		if (h->draining) {
			http_finish(h);
			return;
		}
		h->begun_ns = now_ns(h);
		if (conn_queued(h->conn) > 0)
			(void)conn_moved(h->conn);
		http_deadline(h, h->begun_ns + (h->spoken || h->config->first_ns == 0 ?
							h->config->idle_ns :
							h->config->first_ns));
		return;
	case HTTP_STATE_HEAD:
		http_pause(h, false);
		http_deadline(h, h->begun_ns + h->config->head_ns);
		return;
	case HTTP_STATE_BODY:
		http_pause(h, h->x->body_paused);
		if (h->x->body_paused) {
			http_deadline(h, 0);
			return;
		}
		/* It only moves later while bytes arrive: http_on_deadline() computes it again. */
		if (h->deadline_ns == 0)
			http_deadline(h, body_deadline(h));
		return;
	case HTTP_STATE_HANDLING:
	case HTTP_STATE_CLOSING:
		return;
	case HTTP_STATE_UPGRADED:
		free(h);
		return;
	}
}

void http_on_deadline(struct conn *c)
{
	struct http_conn *h = conn_user(c);
	uint64_t next;

	h->deadline_ns = 0;
	switch (h->state) {
	case HTTP_STATE_HEAD:
		http_fail(h, 408, "the head of the request took too long");
		break;
	case HTTP_STATE_BODY:
		next = body_deadline(h);
		if (next > now_ns(h))
			http_deadline(h, next);
		else
			http_fail(h, 408, "the body of the request took too long");
		break;
	case HTTP_STATE_IDLE:
	case HTTP_STATE_HANDLING:
		if (conn_queued(c) > 0 && conn_moved(c) >= WRITE_MIN)
			http_deadline(h, now_ns(h) + h->config->write_ns);
		else if (conn_queued(c) > 0)
			http_drop(h, -ETIMEDOUT);
		else if (h->state == HTTP_STATE_IDLE && http_input_len(h) == 0)
			http_drop(h, 0);
		break;
	case HTTP_STATE_CLOSING:
	case HTTP_STATE_UPGRADED:
		break;
	}
}
