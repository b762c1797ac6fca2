/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_kit.h - A listener on loopback whose connections record their events, and clients.
 *
 * Server and clients are one thread: clients are non-blocking, and WAIT_FOR() turns the loop until
 * a condition holds or ten seconds have passed.
 */
#ifndef CAISSON_TESTS_NET_KIT_H
#define CAISSON_TESTS_NET_KIT_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "../unit.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "net/conn.h"
#include "net/loop.h"

/* The server side of one connection: what it saw, and does. */
struct rec {
	struct conn *c; /* NULL after on_close */
	struct buf in;
	int pieces, eofs, drains, deadlines, closes, why;
	bool in_call;                   /* a conn_* call is under way */
	void (*on_data)(struct rec *r); /* further things to do in on_data */
	void (*on_eof)(struct rec *r), (*on_drain)(struct rec *r);
	void *arg;
};

#define RECS_MAX 512

struct kit {
	struct loop loop;
	struct listener *ls;
	struct listener_config config;
	char addr[32];
	struct sockaddr_in to;
	bool refuse;
	struct rec recs[RECS_MAX];
	size_t n_recs;
	void (*on_accept)(struct rec *r);
};

static struct kit kit;

static inline void kit_on_data(struct conn *c, const char *data, size_t len)
{
	struct rec *r = conn_user(c);

	assert_false(r->in_call);
	assert_int_equal(r->closes, 0);
	assert_true(len > 0);
	assert_int_equal(r->eofs, 0);
	r->pieces++;
	assert_int_equal(buf_append(&r->in, data, len), 0);
	if (r->on_data)
		r->on_data(r);
}

static inline void kit_on_drain(struct conn *c)
{
	struct rec *r = conn_user(c);

	assert_false(r->in_call);
	assert_int_equal(r->closes, 0);
	assert_false(conn_congested(c));
	assert_true(conn_queued(c) <= kit.config.queue_low);
	r->drains++;
	if (r->on_drain)
		r->on_drain(r);
}

static inline void kit_on_eof(struct conn *c)
{
	struct rec *r = conn_user(c);

	assert_false(r->in_call);
	assert_int_equal(r->closes, 0);
	r->eofs++;
	if (r->on_eof)
		r->on_eof(r);
}

static inline void kit_on_deadline(struct conn *c)
{
	struct rec *r = conn_user(c);

	assert_int_equal(r->closes, 0);
	r->deadlines++;
}

static inline void kit_on_close(struct conn *c, int why)
{
	struct rec *r = conn_user(c);

	assert_false(r->in_call);
	assert_ptr_equal(r->c, c);
	r->closes++;
	r->why = why;
	r->c = NULL;
	/* Too late for all of these, and harmless. */
	assert_true(conn_write(c, "x", 1) < 0);
	conn_pause(c, true);
	conn_deadline(c, 1);
	conn_finish(c);
	conn_close(c, -EIO);
}

static const struct conn_ops kit_ops = {
	.on_data = kit_on_data,
	.on_drain = kit_on_drain,
	.on_eof = kit_on_eof,
	.on_deadline = kit_on_deadline,
	.on_close = kit_on_close,
};

static inline bool kit_accept(struct conn *c, void *arg)
{
	struct kit *k = arg;

	assert_true(k->n_recs < RECS_MAX);
	struct rec *r = &k->recs[k->n_recs++];

	*r = (struct rec){ .c = c, .in = BUF_INIT(64 << 20) };
	conn_set_ops(c, &kit_ops, r);
	if (k->on_accept)
		k->on_accept(r);
	return !k->refuse;
}

/* Call into the connection as its owner, and check that it makes no callback meanwhile. */
#define OWNER(r, call)                                                                             \
	do {                                                                                       \
		(r)->in_call = true;                                                               \
		call;                                                                              \
		(r)->in_call = false;                                                              \
	} while (0)

static inline void kit_init(void)
{
	for (size_t i = 0; i < kit.n_recs; i++)
		buf_free(&kit.recs[i].in);
	memset(&kit, 0, sizeof(kit));
	assert_int_equal(loop_init(&kit.loop, NULL), 0);
	kit.config = (struct listener_config){
		.max_conns = RECS_MAX,
		.queue_high = 256 << 10,
		.queue_low = 64 << 10,
		.queue_max = 4 << 20,
		.linger_ns = 5 * CLOCK_NS_PER_S,
		.on_accept = kit_accept,
		.arg = &kit,
	};
}

/* Serve with kit.config as it is now. */
static inline void kit_listen(int fd, struct tls_server *tls)
{
	struct err e = { 0 };
	socklen_t len = sizeof(kit.to);

	if (fd < 0)
		fd = listener_tcp("127.0.0.1:0", &e);
	assert_string_equal(e.msg, "");
	assert_true(fd >= 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&kit.to, &len), 0);
	assert_int_equal(listener_start(&kit.loop, fd, tls, &kit.config, &kit.ls, &e), 0);
}

static inline void kit_free(void)
{
	listener_free(kit.ls);
	for (size_t i = 0; i < kit.n_recs; i++) {
		if (!kit.refuse)
			assert_int_equal(kit.recs[i].closes, 1);
		buf_free(&kit.recs[i].in);
	}
	kit.n_recs = 0;
	assert_int_equal(kit.loop.n_timers, 0);
	assert_null(kit.loop.deferred);
	loop_free(&kit.loop);
}

static inline int kit_setup(void **state)
{
	(void)state;
	kit_init();
	return 0;
}

static inline int kit_teardown(void **state)
{
	(void)state;
	kit_free();
	return 0;
}

struct unit_fixture unit_fixture = { kit_setup, kit_teardown };

static inline void kit_stop(struct timer *t)
{
	loop_stop(t->arg);
}

static inline void kit_run_ms(uint64_t ms)
{
	struct timer t = { .fn = kit_stop, .arg = &kit.loop };

	timer_set(&kit.loop, &t, clock_now_ns() + ms * CLOCK_NS_PER_MS);
	assert_int_equal(loop_run(&kit.loop, NULL), 0);
}

#define WAIT_FOR(condition)                                                                        \
	for (uint64_t end_ = clock_now_ns() + 60 * CLOCK_NS_PER_S; !(condition);) {                \
		if (clock_now_ns() > end_)                                                         \
			fail_msg("waited in vain for: %s", #condition);                            \
		kit_run_ms(1);                                                                     \
	}

/* Processor time, to see that nothing spins: the loop turns for @ms and uses little of it. */
static inline void kit_assert_idle(uint64_t ms)
{
	struct timespec a, b;

	assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a), 0);
	kit_run_ms(ms);
	assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b), 0);
	int64_t used = (b.tv_sec - a.tv_sec) * 1000000000 + (b.tv_nsec - a.tv_nsec);

	assert_true(used < (int64_t)(ms * CLOCK_NS_PER_MS / 4));
}

/* A non-blocking client; @r is the record of its connection when it was shown to the owner. */
static inline int client_connect(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&kit.to, sizeof(kit.to)), 0);
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	return fd;
}

static inline int client_new(struct rec **ret)
{
	size_t n = kit.n_recs;
	int fd = client_connect();

	WAIT_FOR(kit.n_recs == n + 1);
	*ret = &kit.recs[n];
	return fd;
}

/* Close with a reset. */
static inline void client_reset(int fd)
{
	struct linger now = { .l_onoff = 1, .l_linger = 0 };

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
	fd_close(fd);
}

/* Bytes whose value depends on their place, so that a lost or doubled piece shows. */
static inline char pattern(size_t i)
{
	return (char)((i * 31 + i / 251 + i / 65521) & 0xff);
}

static inline char *pattern_new(size_t len)
{
	char *p = malloc(len);

	assert_non_null(p);
	for (size_t i = 0; i < len; i++)
		p[i] = pattern(i);
	return p;
}

/* Read what is there, append to @out. Return: false at the end of the stream. */
static inline bool client_read(int fd, struct buf *out)
{
	char data[65536];
	ssize_t n;

	while ((n = recv(fd, data, sizeof(data), 0)) > 0)
		assert_int_equal(buf_append(out, data, (size_t)n), 0);
	if (n < 0)
		assert_int_equal(errno, EAGAIN);
	return n != 0;
}

static inline void assert_pattern(const struct buf *b, size_t len)
{
	assert_int_equal(b->len, len);
	for (size_t i = 0; i < len; i++)
		if (b->data[i] != pattern(i))
			fail_msg("byte %zu of %zu is wrong", i, len);
}

#endif
