/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn.c - The life of a connection. See conn.h for the contract, conn_io.c for its bytes.
 *
 * Theory of operation: the states are in conn_int.h. The owner gets a TLS connection only when its
 * handshake is complete, so an owner never has one that cannot carry bytes yet, and a peer that
 * does not speak TLS never reaches the layers above.
 *
 * Every connection ends in conn_end(): it takes the descriptor out of the loop and closes it, stops
 * the timers, and defers on_close to the end of the round. Code that works on the connection (a
 * read loop, a callback of the owner) checks the state after each call; the memory is still valid.
 *
 * Finishing: a close() with unread input makes TCP send a reset, and a reset makes the peer's
 * kernel discard bytes that the peer has not read yet, which may be our last response. So after the
 * queue is written we end our stream (close_notify, shutdown) and read and discard input until the
 * peer has ended its own. That is bounded: by the linger deadline while there is output (a peer
 * that takes some of it gets another one, since a slow line is not a dead one), by DRAIN_NS and
 * DISCARD_MAX after.
 *
 * A connection that is given up because its peer does not read is reset: the peer has lost the rest
 * anyway and learns of it, and the Linux kernel frees the megabytes that it would hold for minutes
 * otherwise.
 */
#include "net/conn.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "net/conn_int.h"
#include "net/sockdiag.h"
#include "net/tls.h"

#define HANDSHAKE_NS (10 * CLOCK_NS_PER_S)
#define DRAIN_NS (2 * CLOCK_NS_PER_S)

static void on_end(struct deferred *d)
{
	conn_gone(d->arg);
}

static void on_deadline(struct timer *t)
{
	struct conn *c = t->arg;

	if (c->ops && c->ops->on_deadline)
		c->ops->on_deadline(c);
}

static void on_guard(struct timer *t)
{
	struct conn *c = t->arg;

	/* In DRAIN all output was sent, and the peer had its time to read it. */
	if (c->state == CONN_FLUSH && conn_moved(c))
		timer_set(c->loop, &c->guard, clock_now_ns() + c->config->linger_ns);
	else
		conn_end(c, c->state == CONN_DRAIN ? 0 : -ETIMEDOUT);
}

struct conn *conn_new(struct loop *l, int fd, struct tls_server *tls,
		      const struct listener_config *config, const struct peer *peer)
{
	struct conn *c = calloc(1, sizeof(*c));

	if (!c || (tls && tls_new(tls, &c->tls) < 0)) {
		fd_close(fd);
		free(c);
		return NULL;
	}
	c->loop = l;
	c->config = config;
	c->peer = *peer;
	c->state = tls ? CONN_HANDSHAKE : CONN_OPEN;
	c->watch = (struct watch){ .fd = fd, .fn = conn_event, .arg = c };
	c->deadline = (struct timer){ .fn = on_deadline, .arg = c };
	c->guard = (struct timer){ .fn = on_guard, .arg = c };
	c->end = (struct deferred){ .fn = on_end, .arg = c };
	c->pump = (struct deferred){ .fn = conn_pump, .arg = c };
	buf_init(&c->out, SIZE_MAX / 2); /* bounded by config->queue_max, see conn_io.c */
	return c;
}

struct conn *conn_open(struct loop *l, int fd, struct tls_server *tls,
		       const struct listener_config *config, const struct conn_ops *ops, void *user)
{
	const struct peer nobody = { .uid = (uid_t)-1, .pid = -1 };
	struct conn *c = conn_new(l, fd, tls, config, &nobody);

	if (!c)
		return NULL;
	conn_set_ops(c, ops, user);
	conn_start(c);
	return c;
}

void conn_start(struct conn *c)
{
	c->watch.events = EPOLLIN | EPOLLRDHUP;
	int r = loop_add(c->loop, &c->watch, NULL);

	if (r < 0) {
		conn_end(c, r);
		return;
	}
	if (c->state == CONN_HANDSHAKE)
		timer_set(c->loop, &c->guard, clock_now_ns() + HANDSHAKE_NS);
	else
		conn_ready(c);
}

void conn_ready(struct conn *c)
{
	timer_cancel(&c->guard);
	c->state = CONN_OPEN;
	if (!c->config->on_accept(c, c->config->arg)) {
		c->ops = NULL; /* an owner that refuses it gets no on_close */
		conn_end(c, -ECONNREFUSED);
	}
}

void conn_end(struct conn *c, int why)
{
	const struct linger none = { .l_onoff = 1, .l_linger = 0 }; /* close() resets it then */

	if (c->state == CONN_CLOSED)
		return;
	if (conn_queued(c) > 0 && (why == -ETIMEDOUT || why == -ENOBUFS))
		(void)setsockopt(c->watch.fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	c->state = CONN_CLOSED;
	c->why = why;
	timer_cancel(&c->deadline);
	timer_cancel(&c->guard);
	loop_undefer(c->loop, &c->pump);
	loop_del(&c->watch);
	c->watch.fd = fd_close(c->watch.fd);
	loop_defer(c->loop, &c->end);
}

void conn_gone(struct conn *c)
{
	if (c->ops && c->ops->on_close)
		c->ops->on_close(c, c->why);
	if (c->listener)
		listener_forget(c);
	tls_free(c->tls);
	buf_free(&c->out);
	free(c);
}

void conn_flushed(struct conn *c)
{
	uint64_t until = clock_now_ns() + DRAIN_NS;

	if (shutdown(c->watch.fd, SHUT_WR) < 0) {
		conn_end(c, -errno);
		return;
	}
	if (c->fin) {
		conn_end(c, 0);
		return;
	}
	c->state = CONN_DRAIN;
	if (until < c->guard.at_ns)
		timer_set(c->loop, &c->guard, until);
}

/* ---- for the owner ------------------------------------------------------------------------- */

void conn_set_ops(struct conn *c, const struct conn_ops *ops, void *user)
{
	c->ops = ops;
	c->user = user;
}

void *conn_user(const struct conn *c)
{
	return c->user;
}

const struct peer *conn_peer(const struct conn *c)
{
	return &c->peer;
}

struct loop *conn_loop(const struct conn *c)
{
	return c->loop;
}

void conn_admit(struct conn *c)
{
	if (c->listener)
		listener_admit(c);
}

int conn_uid(struct conn *c, struct sockdiag *d, uid_t *ret)
{
	int r = c->peer.uid == (uid_t)-1 ? sockdiag_peer(d, c->watch.fd, &c->peer.uid) : 0;

	*ret = c->peer.uid;
	return r;
}

bool conn_is_tls(const struct conn *c)
{
	return c->tls;
}

size_t conn_queued(const struct conn *c)
{
	return c->out.len - c->out_head;
}

/* Bytes that the peer's kernel has acknowledged; without TCP, those that our kernel took. */
static uint64_t acknowledged(const struct conn *c)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	if (getsockopt(c->watch.fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0)
		return c->sent;
	return info.tcpi_bytes_acked;
}

/*
 * Not the queue alone: the Linux kernel asks for more when a third of its buffer is free, which may
 * be a megabyte, and that takes a slow line a minute.
 */
uint64_t conn_moved(struct conn *c)
{
	uint64_t now = c->sent + acknowledged(c), before = c->moved;

	c->moved = now;
	return now - before;
}

uint64_t conn_given(const struct conn *c)
{
	return c->sent + conn_queued(c);
}

bool conn_arrived(const struct conn *c, uint64_t given)
{
	return acknowledged(c) >= given;
}

bool conn_congested(const struct conn *c)
{
	return c->congested;
}

void conn_ask_drain(struct conn *c)
{
	if (conn_queued(c) > 0)
		c->congested = true;
}

void conn_pause(struct conn *c, bool pause)
{
	if (c->paused == pause || c->state != CONN_OPEN)
		return;
	c->paused = pause;
	c->end_ahead = false;
	/* The loop does not report bytes that have left the socket already. */
	if (!pause && c->tls)
		loop_defer(c->loop, &c->pump);
	conn_rearm(c);
}

void conn_deadline(struct conn *c, uint64_t at_ns)
{
	if (c->state != CONN_OPEN || at_ns == 0)
		timer_cancel(&c->deadline);
	else
		timer_set(c->loop, &c->deadline, at_ns);
}

void conn_finish(struct conn *c)
{
	if (c->state != CONN_OPEN)
		return;
	c->state = CONN_FLUSH;
	timer_cancel(&c->deadline);
	loop_undefer(c->loop, &c->pump);
	if (conn_queued(c) > 0)
		(void)conn_moved(c);
	timer_set(c->loop, &c->guard, clock_now_ns() + c->config->linger_ns);
	if (c->tls) {
		tls_shutdown(c->tls);
		if (conn_send_tls(c) < 0)
			return;
	}
	if (conn_queued(c) == 0)
		conn_flushed(c);
	conn_rearm(c);
}

void conn_refuse_plain(struct conn *c)
{
	tls_free(c->tls);
	c->tls = NULL;
	c->state = CONN_OPEN; /* without an owner: nothing is handed up */
	(void)conn_write(c, c->config->plain_answer, strlen(c->config->plain_answer));
	conn_finish(c);
}

void conn_close(struct conn *c, int why)
{
	/* An orderly end without a queue: close_notify lets the peer tell it from a cut. */
	if (c->tls && c->state == CONN_OPEN && why == 0 && conn_queued(c) == 0) {
		tls_shutdown(c->tls);
		(void)conn_send_tls(c);
	}
	conn_end(c, why);
}
