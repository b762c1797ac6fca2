/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_conn_end.c - Every way in which a connection ends: by us at once or in order, by the peer,
 * inside callbacks; the last bytes arrive, everything is bounded, and on_close comes once.
 */
#include <sys/un.h>

#include "net_kit.h"

/* The client closed while we are still to answer: the first write tells. No signal comes of it. */
TEST(write_to_a_closed_client)
{
	struct rec *r;

	kit_listen(-1, NULL);
	fd_close(client_new(&r));
	WAIT_FOR(r->eofs);
	int result = 0;

	/* The first is answered by a reset, the next finds it; the loop has no turn between. */
	for (int i = 0; i < 1000 && result == 0; i++) {
		OWNER(r, result = conn_write(r->c, "x", 1));
		(void)usleep(1000);
	}
	assert_true(result == -EPIPE || result == -ECONNRESET);
	WAIT_FOR(r->closes);
	assert_int_equal(r->why, result);

	/* And when it is the loop that finds it. */
	fd_close(client_new(&r));
	WAIT_FOR(r->eofs);
	OWNER(r, assert_int_equal(conn_write(r->c, "x", 1), 0));
	WAIT_FOR(r->closes);
	assert_true(r->why == -EPIPE || r->why == -ECONNRESET);
}

static void close_now(struct rec *r)
{
	conn_close(r->c, -ECANCELED);
	assert_int_equal(r->closes, 0);
	assert_int_equal(conn_write(r->c, "x", 1), -ECANCELED);
}

TEST(close_inside_data)
{
	struct rec *r;
	_mem_ char *data = pattern_new(200 << 10);

	kit_listen(-1, NULL);
	_fd_ int fd = client_new(&r);

	r->on_data = close_now;
	assert_true(send(fd, data, 200 << 10, 0) > 16384);
	WAIT_FOR(r->closes);
	kit_run_ms(5);
	assert_int_equal(r->pieces, 1);
	assert_int_equal(r->closes, 1);
	assert_int_equal(r->why, -ECANCELED);
}

static void close_all(struct rec *r)
{
	for (size_t i = 0; i < kit.n_recs; i++)
		if (kit.recs[i].c && &kit.recs[i] != r)
			conn_close(kit.recs[i].c, -EINTR);
}

/* Both have data in the same round: the first to be called ends the other. */
TEST(close_of_the_other)
{
	struct rec *r[2];

	kit_listen(-1, NULL);
	_fd_ int a = client_new(&r[0]), b = client_new(&r[1]);

	r[0]->on_data = r[1]->on_data = close_all;
	assert_int_equal(send(a, "x", 1, 0), 1);
	assert_int_equal(send(b, "x", 1, 0), 1);
	WAIT_FOR(r[0]->closes + r[1]->closes == 1);
	assert_int_equal(r[0]->pieces + r[1]->pieces, 1);
	(void)b;
}

static void finish_now(struct rec *r)
{
	conn_finish(r->c);
	conn_finish(r->c);
	assert_int_equal(conn_write(r->c, "x", 1), -EPIPE);
}

/* A half-closing client gets its answer, whole, however long it takes to read it. */
static void answer_and_finish(struct rec *r)
{
	size_t len = 3 << 20;
	_mem_ char *data = pattern_new(len);

	assert_int_equal(conn_write(r->c, data, len), 0);
	finish_now(r);
}

TEST(half_close_and_finish)
{
	struct rec *r;
	_buf_ struct buf got = BUF_INIT(8 << 20);

	kit_listen(-1, NULL);
	_fd_ int fd = client_new(&r);

	r->on_eof = answer_and_finish;
	assert_int_equal(send(fd, "request", 7, 0), 7);
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	WAIT_FOR(r->eofs);
	kit_assert_idle(40);
	WAIT_FOR(!client_read(fd, &got));
	assert_pattern(&got, 3 << 20);
	WAIT_FOR(r->closes);
	assert_int_equal(r->why, 0);
	assert_int_equal(r->drains, 0);
}

/*
 * The client sends a large body that was refused after its first bytes, and reads only when all of
 * it is sent. With a plain close() a reset would throw the answer away.
 */
static void refuse(struct rec *r)
{
	assert_int_equal(conn_write(r->c, "413", 3), 0);
	conn_finish(r->c);
}

TEST(finish_while_the_client_sends)
{
	struct rec *r;
	size_t len = 20 << 20, sent = 0;
	_mem_ char *data = calloc(1, len);
	_buf_ struct buf got = BUF_INIT(64);

	kit_listen(-1, NULL);
	_fd_ int fd = client_new(&r);

	r->on_data = refuse;
	while (sent < len) {
		ssize_t n = send(fd, data + sent, len - sent, MSG_NOSIGNAL);

		if (n > 0)
			sent += (size_t)n;
		else
			assert_int_equal(errno, EAGAIN);
		kit_run_ms(1);
	}
	kit_run_ms(5);
	assert_int_equal(r->closes, 0);
	assert_false(client_read(fd, &got));
	assert_string_equal(buf_str(&got), "413");
	fd_close(TAKE_FD(fd));
	WAIT_FOR(r->closes);
	assert_int_equal(r->why, 0);
	assert_int_equal(r->pieces, 1);
}

TEST(linger_is_bounded)
{
	struct rec *r;
	_mem_ char *data = pattern_new(3 << 20);

	kit.config.linger_ns = CLOCK_NS_PER_S;
	kit.config.queue_max = 16 << 20;
	kit_listen(-1, NULL);
	_fd_ int fd = client_new(&r);

	/* Never reads. */
	for (int i = 0; i < 4; i++)
		OWNER(r, assert_int_equal(conn_write(r->c, data, 3 << 20), 0));
	uint64_t start = clock_now_ns();

	OWNER(r, conn_finish(r->c));
	kit_run_ms(20);
	assert_int_equal(r->closes, 0);
	WAIT_FOR(r->closes);
	assert_int_equal(r->why, -ETIMEDOUT);
	assert_true(clock_now_ns() - start >= kit.config.linger_ns);
	assert_true(clock_now_ns() - start < 50 * CLOCK_NS_PER_S);

	/* The client notices: after the remaining bytes there is no orderly end. */
	ssize_t n;

	while ((n = recv(fd, data, 3 << 20, 0)) > 0)
		;
	assert_int_equal(n, -1);
	assert_int_equal(errno, ECONNRESET);

	/* Has everything, never closes: the drain ends too, in order. */
	_fd_ int other = client_new(&r);

	OWNER(r, conn_finish(r->c));
	WAIT_FOR(r->closes);
	assert_int_equal(r->why, 0);
	(void)fd;
	(void)other;
}

/* A reader that takes longer than the linger time for all of it gets all of it. */
TEST(linger_follows_the_reader)
{
	const size_t len = 48 << 20, piece = 1 << 20; /* far more than the kernel holds */
	struct rec *r;
	_mem_ char *data = pattern_new(len);
	_mem_ char *some = pattern_new(piece);
	_buf_ struct buf got = BUF_INIT(64 << 20);

	kit.config.linger_ns = 4 * CLOCK_NS_PER_S;
	kit.config.queue_max = 64 << 20;
	kit_listen(-1, NULL);
	_fd_ int fd = client_new(&r);
	uint64_t start = clock_now_ns();

	OWNER(r, assert_int_equal(conn_write(r->c, data, len), 0));
	OWNER(r, conn_finish(r->c));
	while (clock_now_ns() - start < 5 * CLOCK_NS_PER_S) {
		ssize_t n = recv(fd, some, piece, 0);

		if (n > 0)
			assert_int_equal(buf_append(&got, some, (size_t)n), 0);
		kit_run_ms(200);
		assert_int_equal(r->closes, 0);
	}
	while (client_read(fd, &got))
		kit_run_ms(1);
	assert_pattern(&got, len);
	fd_close(TAKE_FD(fd));
	WAIT_FOR(r->closes);
	assert_int_equal(r->why, 0);
}

TEST(drain_is_short)
{
	struct rec *r;

	kit.config.linger_ns = 600 * CLOCK_NS_PER_S;
	kit_listen(-1, NULL);
	_fd_ int fd = client_new(&r);
	uint64_t start = clock_now_ns();

	OWNER(r, conn_finish(r->c));
	WAIT_FOR(r->closes);
	assert_int_equal(r->why, 0);
	assert_true(clock_now_ns() - start >= CLOCK_NS_PER_S);
	assert_true(clock_now_ns() - start < 50 * CLOCK_NS_PER_S);
	(void)fd;
}

TEST(reset_while_finishing)
{
	struct rec *r;
	_mem_ char *data = pattern_new(3 << 20);

	kit_listen(-1, NULL);
	int fd = client_new(&r);

	for (int i = 0; i < 2 && conn_queued(r->c) == 0; i++)
		OWNER(r, assert_int_equal(conn_write(r->c, data, 3 << 20), 0));
	OWNER(r, conn_finish(r->c));
	client_reset(fd);
	WAIT_FOR(r->closes);
	assert_true(r->why == -ECONNRESET || r->why == -EPIPE);

	/* In the drain all was sent: not an error. */
	fd = client_new(&r);
	OWNER(r, conn_finish(r->c));
	kit_run_ms(2);
	client_reset(fd);
	WAIT_FOR(r->closes);
	assert_int_equal(r->why, 0);
}

/* Unix sockets hang up in one go: what is there is read first, and pausing does not hide it. */
static struct sockaddr_un unix_at = { .sun_family = AF_UNIX };
static char unix_dir[] = "/tmp/caisson-conn-XXXXXX";

static int unix_client(struct rec **ret)
{
	size_t n = kit.n_recs;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&unix_at, sizeof(unix_at)), 0);
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	WAIT_FOR(kit.n_recs == n + 1);
	*ret = &kit.recs[n];
	return fd;
}

TEST(unix)
{
	struct rec *r;
	struct err e;

	assert_non_null(mkdtemp(unix_dir));
	(void)snprintf(unix_at.sun_path, sizeof(unix_at.sun_path), "%s/s", unix_dir);
	int listening = listener_unix(unix_at.sun_path, 0600, &e);

	assert_true(listening >= 0);
	kit.config.max_strangers = 1; /* does not count here */
	assert_int_equal(listener_start(&kit.loop, listening, NULL, &kit.config, &kit.ls, &e), 0);

	_fd_ int stays = unix_client(&r);
	const struct peer *p = conn_peer(r->c);

	assert_string_equal(p->text, "unix");
	assert_string_equal(p->host, "unix");
	assert_true(p->is_unix);
	assert_false(p->is_loopback);
	assert_int_equal(p->uid, geteuid());
	assert_int_equal(p->pid, getpid());

	/* More than one round's worth, then gone. */
	_mem_ char *data = pattern_new(150 << 10);
	int fd = unix_client(&r);
	size_t sent = 0;

	while (sent < 150 << 10) {
		ssize_t n = send(fd, data + sent, (150 << 10) - sent, 0);

		if (n < 0)
			break;
		sent += (size_t)n;
	}
	fd_close(fd);
	WAIT_FOR(r->closes);
	assert_pattern(&r->in, sent);
	assert_int_equal(r->eofs, 1);
	assert_int_equal(r->why, -EPIPE);

	/* Paused and gone, with and without unread bytes. */
	fd = unix_client(&r);
	OWNER(r, conn_pause(r->c, true));
	fd_close(fd);
	WAIT_FOR(r->closes);
	assert_int_equal(r->why, -EPIPE);
	fd = unix_client(&r);
	OWNER(r, conn_pause(r->c, true));
	assert_int_equal(send(fd, "unread", 6, 0), 6);
	fd_close(fd);
	WAIT_FOR(r->closes);
	assert_int_equal(r->pieces, 0);

	/* Ends in order when the owner finishes in on_eof. */
	fd = unix_client(&r);
	r->on_eof = finish_now;
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	WAIT_FOR(r->closes);
	assert_int_equal(r->why, 0);
	fd_close(fd);
	assert_int_equal(listener_count(kit.ls), 1);
	assert_int_equal(unlink(unix_at.sun_path), 0);
	assert_int_equal(rmdir(unix_dir), 0);
	(void)stays;
}
