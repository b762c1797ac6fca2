/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ws.c - A WebSocket over a connection.
 *
 * Theory of operation: OPEN -> CLOSING -> OVER, only forward. We close, and the peer has a deadline
 * to answer; or the peer closes, and is answered at once (ws_wire.c); or the connection breaks. The
 * owner gets on_close once, from the loop, with the code of the side that closed first. Input after
 * OVER is dropped; so are messages while CLOSING.
 *
 * A ping is sent every times.ping_ns. Any byte that comes within times.pong_ns is an answer: a
 * large message may come before the pong.
 *
 * A peer that has not received the ping or close yet, but takes bytes before it, is slow and not
 * gone: it gets the same time again.
 */
#include "net/ws.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "net/ws_int.h"

#define REASON_MAX 123
/* Input that was read before a pause took effect. */
#define INPUT_MAX (1024 * 1024)

static const struct ws_times default_times = {
	.ping_ns = 30 * CLOCK_NS_PER_S,
	.pong_ns = 30 * CLOCK_NS_PER_S,
	.close_ns = 5 * CLOCK_NS_PER_S,
};

static uint64_t now_ns(const struct ws *w)
{
	return conn_loop(w->conn)->now_ns;
}

void ws_over(struct ws *w, int code)
{
	if (w->state == WS_OVER)
		return;
	w->state = WS_OVER;
	w->code = code;
	conn_deadline(w->conn, 0);
	conn_finish(w->conn);
}

void ws_cut(struct ws *w, int why)
{
	if (w->state == WS_OVER)
		return;
	w->state = WS_OVER;
	w->code = WSLAY_CODE_ABNORMAL_CLOSURE;
	conn_close(w->conn, why);
}

static void on_again(struct deferred *d)
{
	ws_feed(d->arg);
}

static void on_data(struct conn *c, const char *data, size_t len)
{
	struct ws *w = conn_user(c);

	w->heard = true;
	if (w->state == WS_OVER)
		return;
	if (buf_append(&w->in, data, len) < 0)
		ws_cut(w, -ENOBUFS);
	else
		ws_feed(w);
}

static void on_drain(struct conn *c)
{
	struct ws *w = conn_user(c);

	if (w->state == WS_OPEN && w->ops->on_drain)
		w->ops->on_drain(w);
}

/* The end of the stream without a close frame. */
static void on_eof(struct conn *c)
{
	struct ws *w = conn_user(c);

	ws_cut(w, -ECONNRESET);
}

/* The peer has to answer the last frame within @ns. */
static void await(struct ws *w, uint64_t ns)
{
	w->said_at = conn_given(w->conn);
	(void)conn_moved(w->conn);
	conn_deadline(w->conn, now_ns(w) + ns);
}

static void on_deadline(struct conn *c)
{
	struct ws *w = conn_user(c);
	uint64_t now = now_ns(w);
	struct wslay_event_msg ping = { .opcode = WSLAY_PING };

	if (w->state == WS_OVER)
		return;
	if ((w->state == WS_CLOSING || (w->pinged && !w->heard)) && !conn_arrived(c, w->said_at) &&
	    conn_moved(c)) {
		conn_deadline(c, now + (w->state == WS_CLOSING ? w->times.close_ns :
								 w->times.pong_ns));
		return;
	}
	/* While input is paused no answer can be seen. */
	if (w->state == WS_CLOSING || (w->pinged && !w->heard && !w->paused)) {
		ws_cut(w, -ETIMEDOUT);
		return;
	}
	if (w->pinged && now < w->pinged_ns + w->times.ping_ns) {
		w->pinged = false;
		conn_deadline(c, w->pinged_ns + w->times.ping_ns);
		return;
	}
	w->pinged = true;
	w->heard = false;
	w->pinged_ns = now;
	if (wslay_event_queue_msg(w->wslay, &ping) == 0 && ws_flush(w) < 0)
		return;
	await(w, w->times.pong_ns);
}

static void on_close(struct conn *c, int why)
{
	struct ws *w = conn_user(c);

	(void)why;
	if (w->state != WS_OVER)
		w->code = WSLAY_CODE_ABNORMAL_CLOSURE;
	w->state = WS_OVER;
	w->ops->on_close(w, w->code);
	loop_undefer(conn_loop(c), &w->again);
	wslay_event_context_free(w->wslay);
	buf_free(&w->in);
	buf_free(&w->out);
	buf_free(&w->message);
	free(w);
}

static const struct conn_ops ws_conn_ops = {
	.on_data = on_data,
	.on_drain = on_drain,
	.on_eof = on_eof,
	.on_deadline = on_deadline,
	.on_close = on_close,
};

struct ws *ws_new(struct conn *c, const struct ws_ops *ops, void *user, size_t message_max)
{
	struct ws *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->conn = c;
	w->ops = ops;
	w->user = user;
	w->times = default_times;
	w->code = WSLAY_CODE_ABNORMAL_CLOSURE;
	w->message_max = message_max;
	buf_init(&w->in, INPUT_MAX);
	buf_init(&w->out, SIZE_MAX / 2);
	buf_init(&w->message, message_max);
	w->again = (struct deferred){ .fn = on_again, .arg = w };
	if (ws_wire_init(w) < 0) {
		free(w);
		return NULL;
	}
	return w;
}

void ws_start(struct ws *w, struct buf *early)
{
	uint64_t now = now_ns(w);

	w->in = *early;
	w->in.max = INPUT_MAX;
	conn_set_ops(w->conn, &ws_conn_ops, w);
	conn_pause(w->conn, false);
	conn_deadline(w->conn, now + w->times.ping_ns);
	/* Not now: the caller does not have @w yet. */
	if (w->in.len > 0)
		loop_defer(conn_loop(w->conn), &w->again);
}

void ws_set_times(struct ws *w, const struct ws_times *times)
{
	w->times = *times;
	if (w->state == WS_OPEN)
		conn_deadline(w->conn, now_ns(w) + times->ping_ns);
}

static int lost(struct ws *w, int why)
{
	conn_close(w->conn, why);
	return why;
}

int ws_send(struct ws *w, bool text, const void *data, size_t len)
{
	struct wslay_event_msg msg = {
		.opcode = text ? WSLAY_TEXT_FRAME : WSLAY_BINARY_FRAME,
		.msg = data,
		.msg_length = len,
	};

	if (w->state != WS_OPEN || w->broken != 0)
		return -EPIPE;
	if (text && !utf8_valid(data, len))
		return -EILSEQ;

	int r = wslay_event_queue_msg(w->wslay, &msg);

	if (r == WSLAY_ERR_NO_MORE_MSG)
		return -EPIPE;
	return r != 0 ? lost(w, -ENOMEM) : ws_flush(w);
}

int ws_send_buf(struct ws *w, bool text, const struct buf *b)
{
	return b->err ? lost(w, b->err) : ws_send(w, text, buf_str(b), b->len);
}

bool ws_congested(const struct ws *w)
{
	return conn_congested(w->conn);
}

void ws_pause(struct ws *w, bool pause)
{
	if (w->paused == pause || w->state == WS_OVER)
		return;
	w->paused = pause;
	conn_pause(w->conn, pause);
	if (!pause)
		loop_defer(conn_loop(w->conn), &w->again);
}

void ws_close(struct ws *w, int code, const char *reason)
{
	size_t len = reason ? strlen(reason) : 0;

	if (w->state != WS_OPEN)
		return;
	if (len > REASON_MAX) {
		for (len = REASON_MAX; len > 0 && ((unsigned char)reason[len] & 0xc0) == 0x80;)
			len--;
	}
	int r = wslay_event_queue_close(w->wslay, (uint16_t)code, (const uint8_t *)reason, len);

	if (r == WSLAY_ERR_NO_MORE_MSG)
		return; /* already closing: the peer closed first */
	if (r != 0) {
		(void)lost(w, -ENOMEM);
		return;
	}
	w->state = WS_CLOSING;
	w->code = code;
	if (w->paused)
		ws_pause(w, false); /* the peer's answer has to be read */
	if (ws_flush(w) == 0)
		await(w, w->times.close_ns);
}

void *ws_user(const struct ws *w)
{
	return w->user;
}

struct conn *ws_conn(const struct ws *w)
{
	return w->conn;
}
