/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_keep.c - The table of a former front is believed as far as it can be true; slots are given
 * once.
 */
#include "front/cell/keep.h"

#include "base/err.h"
#include "base/fd.h"
#include "front/cell/language.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../unit.h"

#define ID "00112233445566778899aabbccddeeff"

static struct keeper_slot good(void)
{
	struct keeper_slot s = { .used = 1, .id = ID, .cell = 4097, .names = 5 };

	s.kernels[LANG_PYTHON] = (struct keeper_kernel){ .state = KEPT_IDLE, .pid = 2 };
	s.kernels[LANG_BASH] = (struct keeper_kernel){ .state = KEPT_BUSY, .command = 5, .pid = 9 };
	return s;
}

/* ---- slots that make no sense -------------------------------------------------------------- */

TEST(good)
{
	struct keeper_slot s = good();

	assert_null(keep_check(&s));
	s = (struct keeper_slot){ .used = 1, .id = ID }; /* it was not used yet */
	assert_null(keep_check(&s));
}

#define CHECK_BAD(change)                                                                          \
	do {                                                                                       \
		struct keeper_slot s = good();                                                     \
		change;                                                                            \
		if (!keep_check(&s))                                                               \
			fail_msg("accepted: %s", #change);                                         \
	} while (0)

TEST(bad)
{
	CHECK_BAD(s.used = 0);
	CHECK_BAD(s.used = 2);
	CHECK_BAD(s.id[0] = 'A');
	CHECK_BAD(s.id[31] = '\0');
	CHECK_BAD(s.id[32] = '0');
	CHECK_BAD(memset(s.id, '0', sizeof(s.id)));
	CHECK_BAD(memcpy(s.id, "../../../../../../../../etc/pass", 32));
	CHECK_BAD(s.executions = UINT64_MAX);
	CHECK_BAD(s.expires_ms = UINT64_MAX);
	CHECK_BAD(s.gauges = 1u << GAUGE_MAX_);
	CHECK_BAD(s.names = UINT32_MAX);
	CHECK_BAD(s.cell = 0);
	CHECK_BAD(s.kernels[LANG_PYTHON].state = KEPT_STATE_MAX_);
	CHECK_BAD(s.kernels[LANG_BASH].pid = 1); /* kill(-1) is everybody */
	CHECK_BAD(s.kernels[LANG_BASH].pid = -7);
	CHECK_BAD(s.kernels[LANG_BASH].pid = INT_MAX);
	CHECK_BAD(s.kernels[LANG_BASH].command = 6); /* was never given */
	CHECK_BAD(s.kernels[LANG_BASH].command = 0); /* only python is forked */
	CHECK_BAD(s.kernels[LANG_PYTHON].command = 5);
	CHECK_BAD(s.kernels[KEEPER_KERNELS - 1].state = KEPT_IDLE);
}

/* ---- with a keeper ------------------------------------------------------------------------- */

static int keeper; /* the other end of a front's socket */
static int table;

static void say(enum keeper_op op, uint32_t key, const int *fds, size_t n)
{
	const struct keeper_msg m = { .version = KEEPER_VERSION, .op = op, .key = key, .signo = 9 };

	assert_int_equal(fd_send(keeper, &m, sizeof(m), fds, n), 0);
}

static struct keeper_msg heard(size_t *ret_fds)
{
	struct keeper_msg m = { 0 };
	int fds[KEEPER_FDS_MAX];

	*ret_fds = ARRAY_SIZE(fds);
	assert_int_equal(fd_recv(keeper, &m, sizeof(m), fds, ret_fds), sizeof(m));
	for (size_t i = 0; i < *ret_fds; i++)
		fd_close(fds[i]);
	return m;
}

static int begin(void **state)
{
	int pair[2];

	(void)state;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	keeper = pair[0];
	table = memfd_create("table", MFD_CLOEXEC);
	if (dup2(pair[1], KEEPER_FD) < 0 || setenv(KEEPER_ENV, "1", 1) < 0)
		return -1;
	fd_close(pair[1]);
	return ftruncate(table, sizeof(struct keeper_table));
}

static int end(void **state)
{
	(void)state;
	fd_close(keeper);
	fd_close(table);
	fd_close(KEEPER_FD);
	return 0;
}

TEST(hand_over, begin, end)
{
	static struct keep k;
	struct err e = { 0 };
	int fds[KEEPER_FDS_MAX] = { table, table, table }, got[KEEPER_FDS_MAX];
	size_t n_fds;

	say(KEEPER_TABLE, 3, &table, 1);
	say(KEEPER_PUT, KEEPER_WARDEN, fds, 1);
	say(KEEPER_PUT, keep_key(7, KEEPER_CELL), fds, 3);
	say(KEEPER_ALL, 0, NULL, 0);
	assert_int_equal(keep_open(&k, &e), 0);
	assert_int_equal(k.life, 3);
	assert_int_equal(k.signo, 9);
	assert_null(getenv(KEEPER_ENV));
	assert_int_equal(keep_take(&k, KEEPER_WARDEN, got, 7), 1);
	assert_int_equal(fcntl(got[0], F_GETFD), FD_CLOEXEC);
	assert_int_equal(fd_close(got[0]), -1);
	assert_int_equal(keep_take(&k, KEEPER_WARDEN, got, 7), 0); /* once */
	keep_done(&k); /* what was not taken is dropped there, too */
	struct keeper_msg m = heard(&n_fds);

	assert_true(m.op == KEEPER_DROP && m.key == keep_key(7, KEEPER_CELL) && n_fds == 0);
	keep_put(&k, KEEPER_LOCK, fds, 2);
	m = heard(&n_fds);
	assert_true(m.op == KEEPER_PUT && m.key == KEEPER_LOCK && n_fds == 2);
}

TEST(slots, begin, end)
{
	static struct keep k;
	struct err e = { 0 };

	say(KEEPER_TABLE, 1, &table, 1);
	say(KEEPER_ALL, 0, NULL, 0);
	assert_int_equal(keep_open(&k, &e), 0);
	for (int i = 0; i < (int)KEEPER_SLOTS; i++)
		assert_int_equal(keep_slot_new(&k, ID), i);
	assert_int_equal(keep_slot_new(&k, ID), -1);
	assert_null(keep_check(keep_slot(&k, 4095)));
	keep_slot_free(&k, 77);
	keep_slot_free(&k, -1);
	assert_int_equal(keep_slot_new(&k, ID), 77);
	assert_null(keep_slot(&k, -1));
}

TEST(nonsense, begin, end)
{
	static const struct keeper_msg rows[] = {
		{ .version = KEEPER_VERSION + 1, .op = KEEPER_ALL },
		{ .version = KEEPER_VERSION, .op = KEEPER_ALL }, /* without a table */
		{ .version = KEEPER_VERSION, .op = KEEPER_PUT, .key = KEEPER_KEYS },
		{ .version = KEEPER_VERSION, .op = 99 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		static struct keep k;
		struct err e = { 0 };

		assert_int_equal(fd_send(keeper, &rows[i], sizeof(rows[i]), NULL, 0), 0);
		assert_true(keep_open(&k, &e) < 0 && e.msg[0]);
		(void)end(test_state);
		assert_int_equal(begin(test_state), 0);
	}
}

TEST(without_a_keeper)
{
	struct keep k;
	struct err e = { 0 };
	int fd = 0;

	(void)unsetenv(KEEPER_ENV);
	assert_int_equal(keep_open(&k, &e), 0);
	assert_int_equal(keep_slot_new(&k, ID), -1);
	assert_int_equal(keep_take_one(&k, KEEPER_WARDEN), -1);
	keep_put(&k, KEEPER_LOCK, &fd, 1);
	keep_drop(&k, KEEPER_LOCK);
	keep_done(&k);
}
