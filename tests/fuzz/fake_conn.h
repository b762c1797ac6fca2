/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_conn.h - A connection without a socket and a loop without a clock, for targets and tests
 * that have to decide themselves how bytes are cut, when a peer reads and what time it is.
 *
 * It takes the place of conn.c and loop.c when a program is linked: include it in one file, and use
 * nothing of the library that needs the real ones.
 */
#ifndef CAISSON_TESTS_FAKE_CONN_H
#define CAISSON_TESTS_FAKE_CONN_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/buf.h"
#include "net/conn.h"
#include "net/loop.h"

struct conn {
	struct loop loop;
	const struct conn_ops *ops;
	void *user;
	struct peer peer;
	struct buf out; /* everything that was ever written */
	size_t read;    /* how much of it the peer has read */
	size_t moved;   /* and had, when last asked */
	bool stalled;   /* the peer reads nothing of its own accord */
	size_t high, low, max;
	uint64_t deadline_ns;
	bool congested, paused;
	bool finished; /* conn_finish() */
	bool closed;   /* conn_close(): on_close is still to come */
	int why;
};

static inline void fake_init(struct conn *c)
{
	*c = (struct conn){ .high = 64 * 1024, .low = 16 * 1024, .max = 1024 * 1024 };
	c->loop.deferred_tail = &c->loop.deferred;
	c->loop.now_ns = 1000000000;
	buf_init(&c->out, SIZE_MAX / 2);
}

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
	return (struct loop *)&c->loop;
}

size_t conn_queued(const struct conn *c)
{
	return c->out.len - c->read;
}

uint64_t conn_moved(struct conn *c)
{
	size_t before = c->moved;

	c->moved = c->read;
	return c->read - before;
}

uint64_t conn_given(const struct conn *c)
{
	return c->out.len;
}

bool conn_arrived(const struct conn *c, uint64_t given)
{
	return c->read >= given;
}

bool conn_congested(const struct conn *c)
{
	return c->congested;
}

void conn_ask_drain(struct conn *c)
{
	c->congested |= conn_queued(c) > 0;
}

void conn_close(struct conn *c, int why)
{
	if (c->closed)
		return;
	c->closed = true;
	c->why = why;
	c->deadline_ns = 0;
}

int conn_write(struct conn *c, const void *data, size_t len)
{
	if (c->closed || c->finished)
		return -EPIPE;
	if (conn_queued(c) + len > c->max) {
		conn_close(c, -ENOBUFS);
		return -ENOBUFS;
	}
	if (buf_append(&c->out, data, len) < 0)
		abort();
	if (!c->stalled)
		c->read = c->out.len;
	if (conn_queued(c) > c->high)
		c->congested = true;
	return 0;
}

int conn_writev(struct conn *c, const struct iovec *iov, size_t n_iov)
{
	int r = 0;

	for (size_t i = 0; i < n_iov && r == 0; i++)
		r = conn_write(c, iov[i].iov_base, iov[i].iov_len);
	return r;
}

void conn_pause(struct conn *c, bool pause)
{
	c->paused = pause;
}

void conn_deadline(struct conn *c, uint64_t at_ns)
{
	c->deadline_ns = c->closed || c->finished ? 0 : at_ns;
}

void conn_finish(struct conn *c)
{
	c->finished = true;
	c->deadline_ns = 0;
}

void loop_defer(struct loop *l, struct deferred *d)
{
	if (d->queued)
		return;
	d->queued = true;
	d->next = NULL;
	*l->deferred_tail = d;
	l->deferred_tail = &d->next;
}

void loop_undefer(struct loop *l, struct deferred *d)
{
	if (!d->queued)
		return;
	d->queued = false;
	for (struct deferred **p = &l->deferred; *p; p = &(*p)->next) {
		if (*p == d) {
			*p = d->next;
			if (!*p)
				l->deferred_tail = p;
			return;
		}
	}
}

void timer_set(struct loop *l, struct timer *t, uint64_t at_ns)
{
	t->loop = l;
	t->at_ns = at_ns;
}

void timer_cancel(struct timer *t)
{
	t->loop = NULL;
}

/* Whether the owner is still notified of bytes. */
static inline bool fake_open(const struct conn *c)
{
	return !c->closed && !c->finished;
}

static inline void fake_deferred(struct conn *c)
{
	struct deferred *d;

	while ((d = c->loop.deferred)) {
		c->loop.deferred = d->next;
		if (!d->next)
			c->loop.deferred_tail = &c->loop.deferred;
		d->queued = false;
		d->fn(d);
	}
}

/* Bytes arrive, in an allocation of their own so that a read past them is seen. False: it is
 * paused. */
static inline bool fake_deliver(struct conn *c, const void *data, size_t len)
{
	if (c->paused && fake_open(c))
		return false;
	if (fake_open(c)) {
		char *copy = malloc(len ? len : 1);

		if (!copy)
			abort();
		memcpy(copy, data, len);
		c->ops->on_data(c, copy, len);
		free(copy);
	}
	fake_deferred(c);
	return true;
}

/* The peer reads up to @n bytes. */
static inline void fake_read(struct conn *c, size_t n)
{
	c->read += n < conn_queued(c) ? n : conn_queued(c);
	if (c->congested && conn_queued(c) <= c->low) {
		c->congested = false;
		if (fake_open(c) && c->ops->on_drain)
			c->ops->on_drain(c);
	}
	fake_deferred(c);
}

static inline void fake_eof(struct conn *c)
{
	if (fake_open(c))
		c->ops->on_eof(c);
	fake_deferred(c);
}

/* Time passes, and every deadline in it. */
static inline void fake_time(struct conn *c, uint64_t ns)
{
	uint64_t until = c->loop.now_ns + ns;

	while (c->deadline_ns != 0 && c->deadline_ns <= until && fake_open(c)) {
		c->loop.now_ns = c->deadline_ns;
		c->deadline_ns = 0;
		c->ops->on_deadline(c);
		fake_deferred(c);
	}
	c->loop.now_ns = until;
}

/* The last call of every connection. */
static inline void fake_end(struct conn *c)
{
	fake_deferred(c);
	c->ops->on_close(c, c->why);
	if (c->loop.deferred)
		abort(); /* an owner would be called after its end */
	buf_free(&c->out);
}

#endif
