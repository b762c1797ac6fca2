/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_foreign.c - A peer that keeps copies of what it sent, clears O_NONBLOCK and takes the bytes
 * first: nothing waits.
 *
 * Each runs in a process of its own, so that a call that waits after all is seen from outside.
 */
#include "base/foreign.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit.h"
#include "base/clock.h"
#include "base/fd.h"

#define PATIENCE_MS 3000
#define CONTROL_MS 300
#define AT_ONCE_NS (5 * CLOCK_NS_PER_MS)

/* @fn, in a process of its own. Return: whether it ended by itself, and well. */
static bool ends_within(void (*fn)(void), int limit_ms)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		assert_int_equal(foreign_init(), 0);
		fn();
		_exit(0);
	}
	for (int ms = 0; ms < limit_ms; ms++) {
		int status;

		if (waitpid(pid, &status, WNOHANG) == pid)
			return WIFEXITED(status) && WEXITSTATUS(status) == 0;
		(void)poll(NULL, 0, 1);
	}
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	return false;
}

static bool ends(void (*fn)(void))
{
	return ends_within(fn, PATIENCE_MS);
}

#define MUST(x)                                                                                    \
	do {                                                                                       \
		if (!(x)) {                                                                        \
			(void)fprintf(stderr, "line %d: " #x "\n", __LINE__);                      \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

/* The act of the peer: the flag is the description's, so it is gone for both. */
static void make_blocking(int fd)
{
	MUST(fcntl(fd, F_SETFL, 0) == 0);
}

static int listener(struct sockaddr_in *a)
{
	socklen_t len = sizeof(*a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*a = (struct sockaddr_in){ .sin_family = AF_INET };
	a->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	MUST(fd >= 0 && bind(fd, (struct sockaddr *)a, sizeof(*a)) == 0 && listen(fd, 4) == 0);
	MUST(getsockname(fd, (struct sockaddr *)a, &len) == 0);
	return fd;
}

/* ---- the control: what these tests would see if a call waited ------------------------------ */

static void read_plainly(void)
{
	int p[2];
	char byte;

	MUST(pipe(p) == 0);
	(void)!read(p[0], &byte, 1);
}

TEST(control)
{
	assert_false(ends_within(read_plainly, CONTROL_MS));
}

/* ---- pipes --------------------------------------------------------------------------------- */

static void robbed_pipe(void)
{
	uint64_t stalled = 0;
	char bytes[8];
	int p[2];

	MUST(pipe(p) == 0 && foreign_check(p[0], FOREIGN_PIPE) == 0);
	MUST(write(p[1], "abcd", 4) == 4);
	struct pollfd is = { .fd = p[0], .events = POLLIN };

	MUST(poll(&is, 1, 0) == 1);
	make_blocking(p[0]);
	MUST(read(p[0], bytes, sizeof(bytes)) == 4); /* the thief */
	MUST(foreign_read(p[0], bytes, sizeof(bytes), &stalled) == -EAGAIN);
	MUST(stalled == 0);
	MUST(write(p[1], "ef", 2) == 2);
	MUST(foreign_read(p[0], bytes, sizeof(bytes), &stalled) == 2 &&
	     memcmp(bytes, "ef", 2) == 0);
	MUST(close(p[1]) == 0);
	MUST(foreign_read(p[0], bytes, sizeof(bytes), &stalled) == 0);
}

static void full_pipe(void)
{
	static char much[1u << 20];
	uint64_t stalled = 0;
	int p[2];

	MUST(pipe(p) == 0 && foreign_check(p[1], FOREIGN_PIPE) == 0);
	make_blocking(p[1]);
	MUST(foreign_write(p[1], much, sizeof(much), &stalled) > 0);
	MUST(foreign_write(p[1], much, sizeof(much), &stalled) == -EAGAIN);
	MUST(stalled == 0);
	(void)signal(SIGPIPE, SIG_IGN);
	MUST(close(p[0]) == 0);
	MUST(foreign_write(p[1], much, 1, &stalled) == -EPIPE);
}

/* A FIFO with a name has no RWF_NOWAIT, as pipes of older kernels: each wait is short, and so is
 * their sum. */
static void fifo(void)
{
	char path[] = "/tmp/caisson-test-XXXXXX", name[64], byte;
	uint64_t stalled = 0, began;
	ssize_t n;

	MUST(mkdtemp(path));
	(void)snprintf(name, sizeof(name), "%s/fifo", path);
	MUST(mkfifo(name, 0600) == 0);
	int fd = open(name, O_RDWR | O_CLOEXEC);

	MUST(fd >= 0 && unlink(name) == 0 && rmdir(path) == 0);
	MUST(foreign_check(fd, FOREIGN_PIPE) == 0);
	MUST(foreign_read(fd, &byte, 1, &stalled) == -EAGAIN && stalled == 0);
	make_blocking(fd);
	began = clock_now_ns();
	while ((n = foreign_read(fd, &byte, 1, &stalled)) == -EAGAIN)
		;
	MUST(n == -ETIMEDOUT);
	MUST(clock_now_ns() - began < 10 * FOREIGN_STALL_MS * CLOCK_NS_PER_MS);
}

TEST(pipes)
{
	assert_true(ends(robbed_pipe));
	assert_true(ends(full_pipe));
	assert_true(ends(fifo));
}

/* ---- terminals ----------------------------------------------------------------------------- */

static void terminal_read(void)
{
	uint64_t stalled = 0;
	char bytes[8];
	int m, s;
	ssize_t n;

	MUST(openpty(&m, &s, NULL, NULL, NULL) == 0 && foreign_check(m, FOREIGN_TERMINAL) == 0);
	MUST(write(s, "ab", 2) == 2);
	MUST(foreign_read(m, bytes, sizeof(bytes), &stalled) == 2);
	MUST(foreign_read(m, bytes, sizeof(bytes), &stalled) == -EAGAIN);
	make_blocking(m);
	while ((n = foreign_read(m, bytes, sizeof(bytes), &stalled)) == -EAGAIN)
		;
	MUST(n == -ETIMEDOUT);
	/* No timer is left behind. */
	uint64_t began = clock_now_ns();

	MUST(poll(NULL, 0, 50) == 0);
	MUST(clock_now_ns() - began >= 50 * CLOCK_NS_PER_MS);
}

static void terminal_write(void)
{
	static char much[1u << 20];
	uint64_t stalled = 0, began = clock_now_ns();
	int m, s;
	ssize_t n;

	MUST(openpty(&m, &s, NULL, NULL, NULL) == 0 && foreign_check(m, FOREIGN_TERMINAL) == 0);
	make_blocking(m);
	while ((n = foreign_write(m, much, sizeof(much), &stalled)) > 0 || n == -EAGAIN)
		;
	MUST(n == -ETIMEDOUT);
	MUST(clock_now_ns() - began < 10 * FOREIGN_STALL_MS * CLOCK_NS_PER_MS);
}

TEST(terminals)
{
	assert_true(ends(terminal_read));
	assert_true(ends(terminal_write));
}

/* ---- sockets ------------------------------------------------------------------------------- */

static void robbed_listener(void)
{
	struct sockaddr_in a;
	uint64_t stalled = 0;
	int l = listener(&a), c = socket(AF_INET, SOCK_STREAM, 0);

	MUST(foreign_check(l, FOREIGN_LISTENER) == 0);
	MUST(connect(c, (struct sockaddr *)&a, sizeof(a)) == 0);
	int got = foreign_accept(l, &stalled);

	MUST(got >= 0 && fcntl(got, F_GETFL) & O_NONBLOCK && fcntl(got, F_GETFD) == FD_CLOEXEC);
	MUST(foreign_accept(l, &stalled) == -EAGAIN && stalled == 0);
	make_blocking(l);
	while ((got = foreign_accept(l, &stalled)) == -EAGAIN)
		;
	MUST(got == -ETIMEDOUT);
}

static int lingering(void)
{
	static char much[1u << 16];
	const struct linger long_ = { .l_onoff = 1, .l_linger = 3600 };
	struct sockaddr_in a;
	int c = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	(void)listener(&a);
	(void)connect(c, (struct sockaddr *)&a, sizeof(a));
	MUST(foreign_check(c, FOREIGN_STREAM) == 0);
	MUST(setsockopt(c, SOL_SOCKET, SO_LINGER, &long_, sizeof(long_)) == 0);
	while (send(c, much, sizeof(much), MSG_DONTWAIT) > 0)
		;
	return c;
}

static void close_plainly(void)
{
	(void)close(lingering());
}

static void close_lingering(void)
{
	int c = lingering();
	uint64_t began = clock_now_ns();

	errno = EPERM;
	MUST(foreign_close(c) == -1 && errno == EPERM);
	MUST(clock_now_ns() - began < AT_ONCE_NS * 10);
}

/* The peer's listening socket lingers, and its program does not read. */
static int lingering_listener(void)
{
	const struct linger long_ = { .l_onoff = 1, .l_linger = 3600 };
	struct sockaddr_in a;
	int l = listener(&a), c = socket(AF_INET, SOCK_STREAM, 0);

	MUST(setsockopt(l, SOL_SOCKET, SO_LINGER, &long_, sizeof(long_)) == 0);
	MUST(connect(c, (const struct sockaddr *)&a, sizeof(a)) == 0);
	return l;
}

static void fill_and_close(int fd)
{
	static char much[1u << 16];

	MUST(fd >= 0);
	while (send(fd, much, sizeof(much), MSG_DONTWAIT) > 0)
		;
	(void)close(fd);
}

static void accept_plainly(void)
{
	fill_and_close(accept4(lingering_listener(), NULL, NULL, SOCK_NONBLOCK));
}

static void accept_lingering(void)
{
	uint64_t stalled_ns = 0, began;
	int fd = foreign_accept(lingering_listener(), &stalled_ns);

	began = clock_now_ns();
	fill_and_close(fd);
	MUST(clock_now_ns() - began < AT_ONCE_NS * 10);
}

TEST(sockets)
{
	assert_false(ends_within(accept_plainly, CONTROL_MS));
	assert_true(ends(accept_lingering));
	assert_true(ends(robbed_listener));
	assert_false(ends_within(close_plainly, CONTROL_MS));
	assert_true(ends(close_lingering));
}

/* ---- what it is ---------------------------------------------------------------------------- */

/* The only kind that @fd is; 0: none. */
static int kind_of(int fd)
{
	int found = 0;

	for (int k = FOREIGN_PIPE; k <= FOREIGN_MEMORY; k++)
		if (foreign_check(fd, (enum foreign_kind)k) == 0) {
			assert_int_equal(found, 0);
			found = k;
		}
	return found;
}

TEST(kinds)
{
	struct sockaddr_in a;
	int p[2], u[2], m, s;

	assert_int_equal(pipe(p), 0);
	assert_int_equal(kind_of(p[0]), FOREIGN_PIPE);
	assert_int_equal(kind_of(p[1]), FOREIGN_PIPE);
	assert_int_equal(openpty(&m, &s, NULL, NULL, NULL), 0);
	assert_int_equal(kind_of(m), FOREIGN_TERMINAL);
	assert_int_equal(kind_of(s), 0);
	assert_int_equal(kind_of(listener(&a)), FOREIGN_LISTENER);
	assert_int_equal(kind_of(socket(AF_INET6, SOCK_STREAM, 0)), FOREIGN_STREAM);
	assert_int_equal(kind_of(socket(AF_INET, SOCK_DGRAM, 0)), FOREIGN_DATAGRAM);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, u), 0);
	assert_int_equal(kind_of(u[0]), 0);
	assert_int_equal(kind_of(fd_memfd("sealed", "x", 1)), FOREIGN_MEMORY);
	assert_int_equal(kind_of(memfd_create("open", MFD_CLOEXEC)), FOREIGN_MEMORY);
	assert_int_equal(kind_of(open("/dev/zero", O_RDONLY)), 0);
	assert_int_equal(kind_of(open("/proc/self/status", O_RDONLY)), 0);
	assert_int_equal(kind_of(open("/tmp", O_RDONLY | O_DIRECTORY)), 0);
	assert_int_equal(kind_of(-1), 0);
}
