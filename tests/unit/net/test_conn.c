/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_conn.c - Connections on real sockets: order and integrity of bytes, back-pressure, pauses,
 * deadlines, and no callback from inside a call.
 */
#include "net/conn_int.h"
#include "net_kit.h"

TEST(both_ways)
{
	struct rec *r;
	_buf_ struct buf got = BUF_INIT(1024);

	kit_listen(-1, NULL);
	_fd_ int fd = client_new(&r);

	assert_ptr_equal(conn_user(r->c), r);
	assert_ptr_equal(conn_loop(r->c), &kit.loop);
	assert_false(conn_is_tls(r->c));
	assert_int_equal(send(fd, "hello", 5, 0), 5);
	WAIT_FOR(r->in.len == 5);
	assert_string_equal(buf_str(&r->in), "hello");
	OWNER(r, assert_int_equal(conn_write(r->c, "", 0), 0));
	OWNER(r, assert_int_equal(conn_write(r->c, "world", 5), 0));
	assert_int_equal(conn_queued(r->c), 0); /* sent at once */
	assert_true(client_read(fd, &got));
	assert_string_equal(buf_str(&got), "world");

	OWNER(r, conn_close(r->c, 0));
	assert_int_equal(r->closes, 0); /* not from inside */
	WAIT_FOR(r->closes);
	assert_int_equal(r->why, 0);
	assert_false(client_read(fd, &got));
	assert_int_equal(listener_count(kit.ls), 0);
	kit_run_ms(2);
	assert_int_equal(r->closes, 1);
}

TEST(peer_tcp)
{
	struct sockaddr_in me;
	socklen_t len = sizeof(me);
	struct rec *r;
	char want[64];

	kit_listen(-1, NULL);
	_fd_ int fd = client_new(&r);

	assert_int_equal(getsockname(fd, (struct sockaddr *)&me, &len), 0);
	(void)snprintf(want, sizeof(want), "127.0.0.1:%u", ntohs(me.sin_port));
	const struct peer *p = conn_peer(r->c);

	assert_string_equal(p->text, want);
	assert_string_equal(p->host, "127.0.0.1");
	assert_true(p->is_loopback);
	assert_false(p->is_unix);
	assert_int_equal(p->uid, (uid_t)-1);
	assert_int_equal(p->pid, -1);
}

/*
 * A client that does not read: the queue grows to its marks; when it reads, all arrives, in order.
 */
TEST(back_pressure)
{
	struct rec *r;
	size_t len = 12 << 20, sent = 0;
	_mem_ char *data = pattern_new(len);
	_buf_ struct buf got = BUF_INIT(len);

	kit.config.queue_max = 16 << 20; /* the kernel alone takes several MiB */
	kit_listen(-1, NULL);
	_fd_ int fd = client_new(&r);

	/* Pieces of odd sizes; the kernel takes the first of them, the rest is queued. */
	for (size_t step = 1; sent < len; step = step * 3 % 70001) {
		size_t n = step < len - sent ? step : len - sent;

		OWNER(r, assert_int_equal(conn_write(r->c, data + sent, n), 0));
		sent += n;
		assert_true(conn_queued(r->c) <= kit.config.queue_max);
		if (conn_queued(r->c) > kit.config.queue_high)
			assert_true(conn_congested(r->c));
	}
	kit_run_ms(5);
	size_t queued = conn_queued(r->c);

	assert_true(queued > kit.config.queue_high);
	assert_true(conn_congested(r->c));
	assert_int_equal(r->drains, 0);
	kit_assert_idle(50);
	for (uint64_t end = clock_now_ns() + 60 * CLOCK_NS_PER_S; got.len < len;) {
		assert_true(clock_now_ns() < end);
		assert_true(client_read(fd, &got));
		kit_run_ms(1);
		if (r->drains == 0)
			assert_true(conn_queued(r->c) > kit.config.queue_low);
	}
	assert_pattern(&got, len);
	assert_int_equal(conn_queued(r->c), 0);
	assert_false(conn_congested(r->c));
	assert_int_equal(r->drains, 1);
}

/* A producer that follows the marks: writes until congested, goes on in on_drain. */
#define STREAM (24u << 20)

static size_t produced;

static void produce(struct rec *r)
{
	while (produced < STREAM && !conn_congested(r->c)) {
		char piece[10007];

		for (size_t i = 0; i < sizeof(piece); i++)
			piece[i] = pattern(produced + i);
		size_t n = STREAM - produced < sizeof(piece) ? STREAM - produced : sizeof(piece);

		assert_int_equal(conn_write(r->c, piece, n), 0);
		produced += n;
	}
	assert_true(conn_queued(r->c) <= kit.config.queue_high + 10007);
	/* Bytes that were sent do not pile up before those that were not. */
	assert_true(r->c->out.len <= 2 * (kit.config.queue_high + 10007));
}

TEST(producer_follows_drain)
{
	struct rec *r;
	_buf_ struct buf got = BUF_INIT(STREAM);

	/* More than the kernel takes in one go, so that the queue is never empty before the end. */
	kit.config.queue_high = 6 << 20;
	kit.config.queue_low = 5 << 20;
	kit.config.queue_max = 8 << 20;
	kit_listen(-1, NULL);
	_fd_ int fd = client_new(&r);

	produced = 0;
	r->on_drain = produce;
	produce(r);
	for (uint64_t end = clock_now_ns() + 60 * CLOCK_NS_PER_S; got.len < STREAM;) {
		assert_true(clock_now_ns() < end);
		char data[40009];
		ssize_t n = recv(fd, data, sizeof(data), 0);

		if (n > 0)
			assert_int_equal(buf_append(&got, data, (size_t)n), 0);
		kit_run_ms(n > 0 ? 0 : 1);
	}
	assert_pattern(&got, STREAM);
	assert_true(r->drains > 0);
}

TEST(hard_maximum)
{
	struct rec *r;
	char piece[4096] = { 0 };
	int result = 0;

	kit.config.queue_high = 8 << 10;
	kit.config.queue_low = 4 << 10;
	kit.config.queue_max = 64 << 10;
	kit_listen(-1, NULL);
	_fd_ int fd = client_new(&r);

	for (int i = 0; i < 10000 && result == 0; i++) {
		OWNER(r, result = conn_write(r->c, piece, sizeof(piece)));
		assert_true(conn_queued(r->c) <= kit.config.queue_max);
	}
	assert_int_equal(result, -ENOBUFS);
	assert_int_equal(r->closes, 0);
	OWNER(r, assert_int_equal(conn_write(r->c, piece, 1), -ENOBUFS));
	WAIT_FOR(r->closes);
	assert_int_equal(r->why, -ENOBUFS);
	assert_int_equal(listener_count(kit.ls), 0);

	/* One write that is larger than everything there is room for. */
	_fd_ int other = client_new(&r);
	_mem_ char *huge = calloc(1, 32 << 20);

	OWNER(r, assert_int_equal(conn_write(r->c, huge, 32 << 20), -ENOBUFS));
	WAIT_FOR(r->closes);
	assert_int_equal(r->why, -ENOBUFS);
	(void)fd;
	(void)other;
}

static void pause_now(struct rec *r)
{
	conn_pause(r->c, true);
}

TEST(pause_and_resume)
{
	struct rec *r;
	size_t len = 256 << 10, sent = 0;
	_mem_ char *data = pattern_new(len);

	kit_listen(-1, NULL);
	_fd_ int fd = client_new(&r);

	r->on_data = pause_now;
	for (uint64_t end = clock_now_ns() + 60 * CLOCK_NS_PER_S; r->in.len < len;) {
		ssize_t n = send(fd, data + sent, len - sent, 0);

		assert_true(clock_now_ns() < end);
		if (n > 0)
			sent += (size_t)n;
		int pieces = r->pieces;

		kit_run_ms(1);
		/* One piece, then nothing until it goes on. */
		assert_true(r->pieces <= pieces + 1);
		pieces = r->pieces;
		kit_run_ms(1);
		assert_int_equal(r->pieces, pieces);
		OWNER(r, conn_pause(r->c, false));
	}
	assert_pattern(&r->in, len);
	OWNER(r, conn_pause(r->c, true));
	OWNER(r, conn_pause(r->c, true));
	assert_int_equal(send(fd, "x", 1, 0), 1);
	kit_assert_idle(40);
	assert_int_equal(r->in.len, len);
}

/* Paused, everything read: the end of a client is noticed. And an answer still reaches it. */
TEST(paused_half_close)
{
	struct rec *r;
	_buf_ struct buf got = BUF_INIT(64);

	kit_listen(-1, NULL);
	_fd_ int fd = client_new(&r);

	OWNER(r, conn_pause(r->c, true));
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	WAIT_FOR(r->eofs);
	kit_assert_idle(40);
	OWNER(r, conn_pause(r->c, false));
	kit_assert_idle(40);
	assert_int_equal(r->eofs, 1);
	assert_int_equal(r->closes, 0);
	OWNER(r, assert_int_equal(conn_write(r->c, "late", 4), 0));
	OWNER(r, conn_finish(r->c));
	WAIT_FOR(r->closes);
	assert_int_equal(r->why, 0);
	assert_false(client_read(fd, &got));
	assert_string_equal(buf_str(&got), "late");
}

/* With unread bytes before it the end keeps its place, and does not make the loop spin. */
TEST(paused_half_close_behind_data)
{
	struct rec *r;

	kit_listen(-1, NULL);
	_fd_ int fd = client_new(&r);

	OWNER(r, conn_pause(r->c, true));
	assert_int_equal(send(fd, "unread", 6, 0), 6);
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	kit_assert_idle(60);
	assert_int_equal(r->eofs + r->pieces, 0);
	OWNER(r, conn_pause(r->c, false));
	OWNER(r, conn_pause(r->c, true));
	kit_assert_idle(60);
	assert_int_equal(r->eofs + r->pieces, 0);
	OWNER(r, conn_pause(r->c, false));
	WAIT_FOR(r->eofs);
	assert_string_equal(buf_str(&r->in), "unread");
	kit_assert_idle(40);
	assert_int_equal(r->eofs, 1);
}

TEST(paused_reset)
{
	struct rec *r;

	kit_listen(-1, NULL);
	int fd = client_new(&r);

	OWNER(r, conn_pause(r->c, true));
	client_reset(fd);
	WAIT_FOR(r->closes);
	assert_int_equal(r->why, -ECONNRESET);

	/* Also after its end of stream was seen, and with unread bytes. */
	fd = client_new(&r);
	OWNER(r, conn_pause(r->c, true));
	assert_int_equal(send(fd, "unread", 6, 0), 6);
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	kit_run_ms(5);
	client_reset(fd);
	WAIT_FOR(r->closes);
	assert_int_equal(r->why, -EPIPE); /* the kernel's word for it after an end of stream */
	assert_int_equal(r->pieces, 0);
}

TEST(deadline)
{
	struct rec *r;
	uint64_t ms = CLOCK_NS_PER_MS;

	kit_listen(-1, NULL);
	_fd_ int fd = client_new(&r);

	conn_deadline(r->c, clock_now_ns() + 10 * ms);
	conn_deadline(r->c, clock_now_ns() + 3000 * ms); /* later */
	kit_run_ms(20);
	assert_int_equal(r->deadlines, 0);
	WAIT_FOR(r->deadlines);
	kit_run_ms(20);
	assert_int_equal(r->deadlines, 1);
	conn_deadline(r->c, clock_now_ns() + 5 * ms);
	conn_deadline(r->c, 0);
	kit_run_ms(10);
	assert_int_equal(r->deadlines, 1);
	/* The owner's deadline does not outlive its interest. */
	conn_deadline(r->c, clock_now_ns() + 5 * ms);
	OWNER(r, conn_finish(r->c));
	conn_deadline(r->c, clock_now_ns() + 5 * ms);
	kit_run_ms(20);
	assert_int_equal(r->deadlines, 1);
	(void)fd;
}

/* How much one connection may bring per round. */
static size_t round_bytes, round_max;

static void round_over(struct deferred *d)
{
	(void)d;
	if (round_bytes > round_max)
		round_max = round_bytes;
	round_bytes = 0;
}

static struct deferred round_end = { .fn = round_over };

static void count_round(struct rec *r)
{
	round_bytes += r->in.len;
	buf_clear(&r->in);
	loop_defer(&kit.loop, &round_end);
}

TEST(read_budget)
{
	struct rec *r;
	size_t len = 1 << 20;
	_mem_ char *data = calloc(1, len);

	kit_listen(-1, NULL);
	_fd_ int fd = client_new(&r);

	round_max = 0;
	r->on_data = count_round;
	for (int i = 0; i < 20; i++) {
		assert_true(send(fd, data, len, 0) > 0 || errno == EAGAIN);
		kit_run_ms(1);
	}
	assert_true(round_max >= 16 << 10);
	assert_true(round_max <= 64 << 10);
}

static const struct conn_ops no_ops = { 0 };

static void use_no_ops(struct rec *r)
{
	r->closes = 1; /* it will not be counted */
	conn_set_ops(r->c, &no_ops, NULL);
}

/* Callbacks that are not there are not called. */
TEST(no_callbacks)
{
	struct rec *r;
	_mem_ char *data = pattern_new(2 << 20);

	kit.on_accept = use_no_ops;
	kit_listen(-1, NULL);
	_fd_ int fd = client_new(&r);

	assert_int_equal(send(fd, "x", 1, 0), 1);
	conn_deadline(r->c, 1);
	assert_int_equal(conn_write(r->c, data, 2 << 20), 0);
	kit_run_ms(5);
	_buf_ struct buf got = BUF_INIT(4 << 20);

	WAIT_FOR(client_read(fd, &got) && got.len == 2 << 20);
	/* The end of the peer is the end of it. */
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	WAIT_FOR(!client_read(fd, &got));
	WAIT_FOR(listener_count(kit.ls) == 0);
}
