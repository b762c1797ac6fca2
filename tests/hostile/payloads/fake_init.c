/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_init.c - A pid 1 that was taken over: it speaks on the real channel, and speaks nonsense.
 *
 * Put in the place of caisson-init. The last byte of its own file says what it does: see acts[]. It
 * starts no command, so nothing it says about one is true.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../../src/wire/init.h"

#define CHANNEL 3
#define SIZE 104 /* larger than sizeof(struct init_msg), cut below */

struct msg {
	uint32_t type, id;
	uint64_t rest[(SIZE - 8) / 8];
};

/* The real numbers, so that a change of the protocol cannot turn an attack into noise. */
enum {
	CONFIG = INIT_CONFIG,
	READY = INIT_READY,
	STARTED = INIT_STARTED,
	FAILED = INIT_FAILED,
	EXITED = INIT_EXITED
};

_Static_assert(sizeof(struct init_msg) < SIZE, "a real message has to fit");

static size_t size = SIZE; /* of a real message, learnt from the first one */

static void say(uint32_t type, uint32_t id, uint64_t a, uint64_t b)
{
	struct msg m = { .type = type, .id = id, .rest = { a, b } };

	if (send(CHANNEL, &m, size, MSG_NOSIGNAL) < 0)
		_exit(0);
}

static void wait_for_exec(void)
{
	char buf[4096];

	(void)!recv(CHANNEL, buf, sizeof(buf), 0);
}

static void hang(void)
{
	for (;;)
		(void)sleep(1);
}

/* a: nothing at all */
static void act_silent(void)
{
	hang();
}

/* b: closes the channel and lives on */
static void act_close(void)
{
	(void)close(CHANNEL);
	hang();
}

/* c: one byte, c then as many as fit */
static void act_short(void)
{
	(void)send(CHANNEL, "x", 1, MSG_NOSIGNAL);
	hang();
}

static void act_long(void)
{
	static char big[150000];

	(void)memset(big, 0xff, sizeof(big));
	(void)send(CHANNEL, big, sizeof(big), MSG_NOSIGNAL);
	hang();
}

static void act_types(void)
{
	for (uint32_t t = 0; t < 2000; t++)
		say(t * 2654435761u | 0x100, t, ~0ull, ~0ull);
	hang();
}

/* Unrequested descriptors with every message. */
static void flood(uint32_t type, size_t n)
{
	for (int i = 0; i < 3000; i++) {
		union {
			char buf[CMSG_SPACE(sizeof(int) * 16)];
			struct cmsghdr align;
		} control = { 0 };
		struct msg m = { .type = type, .id = 1 };
		struct iovec iov = { &m, size };
		struct msghdr h = { .msg_iov = &iov,
				    .msg_iovlen = 1,
				    .msg_control = control.buf,
				    .msg_controllen = CMSG_SPACE(sizeof(int) * n) };
		struct cmsghdr *c = CMSG_FIRSTHDR(&h);

		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * n);
		for (size_t k = 0; k < n; k++)
			((int *)(void *)CMSG_DATA(c))[k] = 0;
		if (sendmsg(CHANNEL, &h, MSG_NOSIGNAL) < 0)
			_exit(0);
	}
	hang();
}

/* More than any message may have. */
static void act_descriptors(void)
{
	flood(READY, 16);
}

/* As many as a message may have, but not this one. */
static void act_welcome(void)
{
	flood(READY, INIT_FDS_MAX);
}

/* Nor this one, of a command that was asked for with stdio of its own. */
static void act_gifts(void)
{
	wait_for_exec();
	flood(STARTED, INIT_FDS_MAX);
}

/* Many times started, never ended: the wall clock must still end it. */
static void act_restart(void)
{
	wait_for_exec();
	for (;;) {
		say(STARTED, 1, 2, 0);
		(void)usleep(1000);
	}
}

/* An end with absurd numbers, of a command that never began. */
static void act_absurd(void)
{
	struct msg m = { .type = EXITED, .id = 1 };

	(void)memset(m.rest, 0xff, sizeof(m.rest));
	m.rest[0] = 0; /* "exit code 0" */
	(void)send(CHANNEL, &m, size, MSG_NOSIGNAL);
	hang();
}

/* Failures with stages and errors that do not exist. */
static void act_failed(void)
{
	say(FAILED, 1, 0xffffffff00000fffull, 0);
	hang();
}

int main(void)
{
	static void (*const acts[])(void) = {
		act_silent,  act_close,  act_short,  act_long,    act_types, act_descriptors,
		act_restart, act_absurd, act_failed, act_welcome, act_gifts,
	};
	char mode = 'a', first[4096];
	int self = open("/proc/self/exe", O_RDONLY);
	ssize_t n = recv(CHANNEL, first, sizeof(first), 0);

	if (n > 8 && n < SIZE)
		size = (size_t)n;
	if (self >= 0 && lseek(self, -1, SEEK_END) >= 0)
		(void)!read(self, &mode, 1);
	if (mode < 'a' || (size_t)(mode - 'a') >= sizeof(acts) / sizeof(acts[0]))
		return 97;
	acts[mode - 'a']();
	return 0;
}
