/* SPDX-License-Identifier: Apache-2.0 */
/* test_uplink.c - Bytes over a socket that another process made: back-pressure, half-close, ends.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../unit.h"
#include "base/clock.h"
#include "base/fd.h"
#include "net/http_relay.h"

struct kit {
	struct loop loop;
	struct uplink up;
	int peer;
	unsigned int connected, drains, eofs;
	size_t got;
	int why;
	bool stop_at_data;
	struct timer late;
};

static void on_connected(struct uplink *u)
{
	struct kit *k = u->arg;

	k->connected++;
}

static void on_data(struct uplink *u, const char *data, size_t len)
{
	struct kit *k = u->arg;

	(void)data;
	k->got += len;
	if (k->stop_at_data)
		uplink_pause(u, true);
	loop_stop(&k->loop);
}

static void on_drain(struct uplink *u)
{
	struct kit *k = u->arg;

	k->drains++;
	loop_stop(&k->loop);
}

static void on_eof(struct uplink *u)
{
	struct kit *k = u->arg;

	k->eofs++;
	loop_stop(&k->loop);
}

static void on_broken(struct uplink *u, int why)
{
	struct kit *k = u->arg;

	k->why = why;
	loop_stop(&k->loop);
}

static const struct uplink_ops ops = { on_connected, on_data, on_drain, on_eof, on_broken };

static void on_late(struct timer *t)
{
	loop_stop(t->arg);
}

/* Until something happens, or for a moment. */
static void run(struct kit *k)
{
	k->late = (struct timer){ .fn = on_late, .arg = &k->loop };
	timer_set(&k->loop, &k->late, clock_now_ns() + 20 * CLOCK_NS_PER_MS);
	assert_int_equal(loop_run(&k->loop, NULL), 0);
	timer_cancel(&k->late);
}

/* Until it is so; it has to be, some time. */
#define UNTIL(k, condition)                                                                        \
	do {                                                                                       \
		for (int i_ = 0; i_ < 500 && !(condition); i_++)                                   \
			run(k);                                                                    \
		assert_true(condition);                                                            \
	} while (0)

static void begin(struct kit *k)
{
	int pair[2];

	*k = (struct kit){ .peer = -1 };
	assert_int_equal(loop_init(&k->loop, NULL), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	k->peer = pair[1];
	assert_int_equal(uplink_open(&k->up, &k->loop, pair[0], &ops, k), 0);
}

static void end(struct kit *k)
{
	uplink_close(&k->up);
	uplink_close(&k->up);
	fd_close(k->peer);
	loop_free(&k->loop);
}

TEST(both_ways)
{
	char data[16];
	struct kit k;

	begin(&k);
	assert_int_equal(uplink_write(&k.up, "early", 5), 0);
	UNTIL(&k, k.connected == 1);
	assert_int_equal(read(k.peer, data, sizeof(data)), 5);
	assert_int_equal(write(k.peer, "hello", 5), 5);
	UNTIL(&k, k.got == 5);
	uplink_finish(&k.up);
	assert_int_equal(read(k.peer, data, sizeof(data)), 0);
	assert_int_equal(write(k.peer, "more", 4), 4);
	UNTIL(&k, k.got == 9);
	k.peer = fd_close(k.peer);
	UNTIL(&k, k.eofs == 1);
	end(&k);
}

TEST(back_pressure)
{
	static char block[100000];
	struct kit k;
	size_t sent = 0;

	begin(&k);
	run(&k);
	while (!uplink_full(&k.up)) {
		assert_int_equal(uplink_write(&k.up, block, sizeof(block)), 0);
		sent += sizeof(block);
	}
	run(&k);
	assert_int_equal(k.drains, 0);
	for (size_t got = 0; got < sent;) {
		ssize_t n = read(k.peer, block, sizeof(block));

		if (n > 0)
			got += (size_t)n;
		else
			run(&k);
	}
	run(&k);
	assert_int_equal(k.drains, 1);
	assert_false(uplink_full(&k.up));
	/* More than may ever wait. */
	int r = 0;

	for (int i = 0; i < 100 && r == 0; i++)
		r = uplink_write(&k.up, block, sizeof(block));
	assert_int_equal(r, -ENOBUFS);
	end(&k);
}

TEST(pause)
{
	struct kit k;

	begin(&k);
	run(&k);
	k.stop_at_data = true;
	assert_int_equal(write(k.peer, "one", 3), 3);
	UNTIL(&k, k.got == 3);
	assert_int_equal(write(k.peer, "two", 3), 3);
	k.peer = fd_close(k.peer);
	run(&k);
	assert_int_equal(k.got, 3);
	assert_int_equal(k.eofs, 0);
	k.stop_at_data = false;
	uplink_pause(&k.up, false);
	UNTIL(&k, k.got == 6);
	UNTIL(&k, k.eofs == 1);
	end(&k);
}

/* Bytes of a peer that has stopped reading still arrive. */
TEST(deaf_peer)
{
	struct kit k;

	begin(&k);
	run(&k);
	assert_int_equal(write(k.peer, "no", 2), 2);
	k.peer = fd_close(k.peer);
	assert_int_equal(uplink_write(&k.up, "request", 7), 0);
	assert_int_equal(uplink_write(&k.up, "more", 4), 0);
	UNTIL(&k, k.got == 2);
	UNTIL(&k, k.eofs == 1);
	end(&k);
}
