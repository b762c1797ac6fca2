/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_relay.c - Requests to a server and answers from it. See http_relay.h for the contract.
 *
 * Theory of operation. Nothing is passed on as it came. The owner writes the head of a request
 * anew, the relay frames the body anew, answers are parsed (net/answer.c) and framed anew: client
 * and server cannot read different messages out of the same bytes.
 *
 *   no request --relay_request()--> head and body to the server --> answer --> no request
 *                                                               \-> 101: a tunnel, to the end
 *
 * Back pressure: a body is paused while the queue to the server is full, and the server is not read
 * while the client's queue is congested; so memory is bounded by the two queues. In a tunnel it is
 * the same. The end of the client's stream is passed on to the server, which may still send; the
 * end of the server's stream ends the tunnel.
 *
 * An answer may begin before all of the request was sent. Then net/http.h reads no more of the
 * request, and closes the client's connection after the answer.
 *
 * Deadlines count from the last byte in either direction. A client that does not read is the
 * concern of net/http.h, which ends it before these deadlines do.
 */
#include "net/http_relay.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "net/conn.h"
#include "net/http.h"

/* ---- the answer ---------------------------------------------------------------------------- */

static void on_answer_head(struct answer *a)
{
	struct relay *r = a->arg;

	if (!r->x || a->status == 101)
		return;
	r->ops->answer_head(r);
	r->answering = true;
	if (a->has_length && a->status != 204 && a->status != 304) {
		r->left = a->length;
		http_stream_sized(r->x, a->status, NULL, a->length);
	} else {
		r->left = UINT64_MAX;
		http_stream(r->x, a->status, NULL);
	}
	http_stream_on_drain(r->x, r->ops->client_drain);
}

static void on_answer_body(struct answer *a, const char *data, size_t len)
{
	struct relay *r = a->arg;

	if (!r->x || len > r->left)
		return;
	r->left -= len;
	(void)http_stream_write(r->x, data, len);
}

static const struct answer_ops answer_ops = { .head = on_answer_head, .body = on_answer_body };

static bool count(struct relay *r)
{
	return !r->ops->moved || r->ops->moved(r);
}

static void switch_protocol(struct relay *r, const char *early, size_t len)
{
	const char *to = answer_header(&r->answer, "upgrade");

	if (strcasecmp(to, http_header(r->x, "upgrade")) != 0) {
		r->ops->failed(r, RELAY_WRONG_PROTOCOL, 0);
		return;
	}
	r->ops->answer_head(r);
	relay_tunnel(r, to, early, len);
}

static void on_data(struct uplink *u, const char *data, size_t len)
{
	struct relay *r = u->arg;
	size_t used = 0;

	if (!count(r))
		return;
	if (!r->x) {
		r->ops->failed(r, RELAY_UNASKED, 0);
		return;
	}
	int verdict = answer_feed(&r->answer, data, len, &used);

	if (verdict < 0)
		r->ops->failed(r, RELAY_BAD_ANSWER, 0);
	else if (verdict == 1 && r->answer.status == 101)
		switch_protocol(r, data + used, len - used);
	else if (verdict == 1)
		r->ops->answered(r);
	else if (r->x && r->answering && http_stream_congested(r->x))
		uplink_pause(u, true);
}

static void on_eof(struct uplink *u)
{
	struct relay *r = u->arg;

	if (r->x && answer_eof(&r->answer) == 1)
		r->ops->answered(r);
	else
		r->ops->failed(r, RELAY_CLOSED, 0);
}

/* ---- the request --------------------------------------------------------------------------- */

static void put(struct relay *r, const void *data, size_t len)
{
	if (uplink_is_open(&r->up) && uplink_write(&r->up, data, len) < 0)
		r->ops->failed(r, RELAY_FULL, 0);
}

static void send_head(struct relay *r)
{
	put(r, r->head.data, r->head.len);
	buf_wipe(&r->head);
}

void relay_request(struct relay *r, struct http_exchange *x, bool switches)
{
	r->x = x;
	r->chunked = http_header(x, "transfer-encoding") != NULL;
	r->whole = r->answering = false;
	answer_init(&r->answer, strcmp(http_request(x)->method, "HEAD") == 0, switches, &answer_ops,
		    r);
	if (r->ready)
		send_head(r);
	else
		http_pause_body(x, true);
}

void relay_body(struct relay *r, const char *data, size_t len)
{
	char size[24];

	r->moved_ns = r->loop->now_ns;
	if (r->chunked) {
		int n = snprintf(size, sizeof(size), "%zx\r\n", len);

		put(r, size, (size_t)n);
	}
	put(r, data, len);
	if (r->chunked)
		put(r, "\r\n", 2);
	if (r->x && uplink_full(&r->up))
		http_pause_body(r->x, true);
}

void relay_body_end(struct relay *r)
{
	r->whole = true;
	if (r->chunked && r->ready)
		put(r, "0\r\n\r\n", 5);
}

static void on_connected(struct uplink *u)
{
	struct relay *r = u->arg;

	r->ready = true;
	if (r->ops->connected)
		r->ops->connected(r);
	if (!r->x)
		return;
	send_head(r);
	if (r->x && r->whole && r->chunked)
		put(r, "0\r\n\r\n", 5);
	else if (r->x && !r->whole)
		http_pause_body(r->x, false);
}

static void on_drain(struct uplink *u)
{
	struct relay *r = u->arg;

	if (count(r) && r->x && !r->whole && !r->answering)
		http_pause_body(r->x, false);
}

static void on_broken(struct uplink *u, int why)
{
	struct relay *r = u->arg;

	r->ops->failed(r, r->ready ? RELAY_BROKEN : RELAY_UNREACHABLE, -why);
}

static const struct uplink_ops request_ops = {
	.connected = on_connected,
	.data = on_data,
	.drain = on_drain,
	.eof = on_eof,
	.broken = on_broken,
};

/* ---- the tunnel ---------------------------------------------------------------------------- */

static void on_client_data(struct conn *c, const char *data, size_t len)
{
	struct relay *r = conn_user(c);

	if (uplink_write(&r->up, data, len) < 0)
		r->ops->failed(r, RELAY_FULL, 0);
	else if (count(r) && uplink_full(&r->up))
		conn_pause(c, true);
}

static void on_client_drain(struct conn *c)
{
	struct relay *r = conn_user(c);

	uplink_pause(&r->up, false);
}

static void on_client_eof(struct conn *c)
{
	struct relay *r = conn_user(c);

	uplink_finish(&r->up);
}

static void on_client_close(struct conn *c, int why)
{
	struct relay *r = conn_user(c);

	(void)why;
	r->conn = NULL;
	r->ops->client_closed(r);
}

static const struct conn_ops client_ops = {
	.on_data = on_client_data,
	.on_drain = on_client_drain,
	.on_eof = on_client_eof,
	.on_close = on_client_close,
};

static void on_tunnel_data(struct uplink *u, const char *data, size_t len)
{
	struct relay *r = u->arg;

	if (!count(r))
		return;
	(void)conn_write(r->conn, data, len); /* after a failure on_close follows */
	if (conn_congested(r->conn))
		uplink_pause(u, true);
}

static void on_tunnel_drain(struct uplink *u)
{
	struct relay *r = u->arg;

	conn_pause(r->conn, false);
}

static void on_tunnel_eof(struct uplink *u)
{
	struct relay *r = u->arg;

	r->ops->server_ended(r, 0);
}

static void on_tunnel_broken(struct uplink *u, int why)
{
	struct relay *r = u->arg;

	r->ops->server_ended(r, why);
}

static const struct uplink_ops tunnel_ops = {
	.data = on_tunnel_data,
	.drain = on_tunnel_drain,
	.eof = on_tunnel_eof,
	.broken = on_tunnel_broken,
};

void relay_tunnel(struct relay *r, const char *protocol, const char *early, size_t len)
{
	struct buf ahead = BUF_INIT(0);
	struct http_exchange *x = relay_release(r);
	struct conn *c = http_upgrade(x, protocol, &ahead);

	if (!c) {
		r->ops->failed(r, RELAY_CLIENT_GONE, 0);
		return;
	}
	r->conn = c;
	conn_set_ops(c, &client_ops, r);
	r->up.ops = &tunnel_ops;
	if (len > 0)
		(void)conn_write(c, early, len);
	if (ahead.len > 0)
		on_client_data(c, ahead.data, ahead.len);
	buf_free(&ahead);
}

/* ---- life ---------------------------------------------------------------------------------- */

static uint64_t patience(const struct relay *r)
{
	const struct relay_times *t = &r->ops->times;

	if (!r->ready)
		return t->connect_ns;
	return r->answering || r->conn ? t->idle_ns : t->answer_ns;
}

static void on_timer(struct timer *t)
{
	struct relay *r = t->arg;
	uint64_t last = r->moved_ns, wait = patience(r);

	/* Bytes of a handshake give the server no more time. */
	if (r->ready && r->up.moved_ns > last)
		last = r->up.moved_ns;
	if (wait == 0)
		return;
	if (r->loop->now_ns < last + wait)
		timer_set(r->loop, t, last + wait);
	else
		r->ops->failed(r, RELAY_LATE, 0);
}

void relay_init(struct relay *r, struct loop *l, size_t head_max, const struct relay_ops *ops)
{
	*r = (struct relay){ .loop = l, .ops = ops };
	r->timer = (struct timer){ .fn = on_timer, .arg = r };
	buf_init(&r->head, head_max);
}

void relay_start_timer(struct relay *r)
{
	r->moved_ns = r->loop->now_ns;
	timer_set(r->loop, &r->timer, r->moved_ns + r->ops->times.connect_ns);
}

int relay_open(struct relay *r, int fd)
{
	r->moved_ns = r->loop->now_ns;
	return uplink_open(&r->up, r->loop, fd, &request_ops, r);
}

struct http_exchange *relay_release(struct relay *r)
{
	struct http_exchange *x = r->x;

	r->x = NULL;
	if (x && r->ops->released)
		r->ops->released(x);
	return x;
}

struct conn *relay_release_conn(struct relay *r)
{
	static const struct conn_ops none;
	struct conn *c = r->conn;

	if (c)
		conn_set_ops(c, &none, NULL);
	r->conn = NULL;
	return c;
}

void relay_forget(struct relay *r)
{
	buf_wipe(&r->head);
	answer_free(&r->answer);
	r->x = NULL;
	r->answering = r->chunked = r->whole = false;
}

void relay_close(struct relay *r)
{
	timer_cancel(&r->timer);
	uplink_close(&r->up);
	answer_free(&r->answer);
	buf_wipe(&r->head);
}
