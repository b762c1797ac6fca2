/* SPDX-License-Identifier: Apache-2.0 */
/*
 * foreign.c - Reading, writing, accepting and closing without waiting for a peer.
 *
 * The timer. SIGALRM has a handler without SA_RESTART, so that its arrival ends a call that waits.
 * It repeats: a first tick that comes before the call begins to wait interrupts nothing, the next
 * one does. The count of voluntary switches tells whether a call has waited or only lost the
 * processor.
 */
#include "base/foreign.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

#ifndef RWF_NOWAIT /* statx(), preadv2() and this are not in every musl */
#define RWF_NOWAIT 8
#endif

static bool ready; /* without a handler a tick would end the process */

static void on_tick(int signo)
{
	(void)signo;
}

int foreign_init(void)
{
	const struct sigaction act = { .sa_handler = on_tick };
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGALRM);
	if (sigaction(SIGALRM, &act, NULL) < 0 || sigprocmask(SIG_UNBLOCK, &set, NULL) < 0)
		return -errno;
	ready = true;
	return 0;
}

static void tick(bool on)
{
	const struct timeval every = { .tv_usec = on ? FOREIGN_TICK_MS * 1000 : 0 };
	const struct itimerval t = { .it_interval = every, .it_value = every };

	if (ready)
		(void)setitimer(ITIMER_REAL, &t, NULL);
}

struct guard {
	long switches;
	uint64_t began_ns;
};

static long switches(void)
{
	struct rusage u = { 0 };

	(void)getrusage(RUSAGE_THREAD, &u);
	return u.ru_nvcsw;
}

static struct guard guard_begin(void)
{
	const struct guard g = { .switches = switches(), .began_ns = clock_now_ns() };

	tick(true);
	return g;
}

/* @n: the call's result, with errno. Return: the result or -errno; -ETIMEDOUT: the peer has cost
 * too much time. */
static ssize_t guard_end(const struct guard *g, ssize_t n, uint64_t *stalled_ns)
{
	int error = errno;

	tick(false);
	if (switches() != g->switches)
		*stalled_ns += clock_now_ns() - g->began_ns;
	if (*stalled_ns > FOREIGN_STALL_MS * CLOCK_NS_PER_MS)
		return -ETIMEDOUT;
	return n >= 0 ? n : error == EINTR ? -EAGAIN : -error;
}

/* ---- kinds --------------------------------------------------------------------------------- */

static int option(int fd, int name)
{
	int value = -1;
	socklen_t len = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, name, &value, &len) < 0 ? -1 : value;
}

static bool is_inet(int fd, int type, bool listens)
{
	int domain = option(fd, SO_DOMAIN);

	return (domain == AF_INET || domain == AF_INET6) && option(fd, SO_TYPE) == type &&
	       option(fd, SO_PROTOCOL) == (type == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP) &&
	       option(fd, SO_ACCEPTCONN) == listens;
}

/* /dev/ptmx, or ptmx of a devpts: every open file of that device is a master. */
static bool is_terminal(int fd)
{
	struct statx st;

	return syscall(SYS_statx, fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &st) ==
		       0 &&
	       S_ISCHR(st.stx_mode) && st.stx_rdev_major == 5 && st.stx_rdev_minor == 2;
}

static bool is_of(int fd, enum foreign_kind kind)
{
	switch (kind) {
	case FOREIGN_PIPE:
		return fcntl(fd, F_GETPIPE_SZ) > 0;
	case FOREIGN_TERMINAL:
		return is_terminal(fd);
	case FOREIGN_STREAM:
		return is_inet(fd, SOCK_STREAM, false);
	case FOREIGN_LISTENER:
		return is_inet(fd, SOCK_STREAM, true);
	case FOREIGN_DATAGRAM:
		return is_inet(fd, SOCK_DGRAM, false);
	case FOREIGN_MEMORY:
		return fcntl(fd, F_GET_SEALS) >= 0;
	}
	return false;
}

int foreign_check(int fd, enum foreign_kind kind)
{
	if (!is_of(fd, kind))
		return -EPROTO;
	if (kind != FOREIGN_MEMORY && fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		return -EPROTO;
	return 0;
}

/* ---- bytes --------------------------------------------------------------------------------- */

static ssize_t move(int fd, bool out, void *data, size_t len, uint64_t *stalled_ns)
{
	const struct iovec iov = { .iov_base = data, .iov_len = len };
	ssize_t n = TEMP_FAILURE_RETRY(
		syscall(out ? SYS_pwritev2 : SYS_preadv2, fd, &iov, 1ul, -1l, -1l, RWF_NOWAIT));

	if (n >= 0 || errno != EOPNOTSUPP)
		return n < 0 ? -errno : n;
	const struct guard g = guard_begin();

	return guard_end(&g, out ? write(fd, data, len) : read(fd, data, len), stalled_ns);
}

ssize_t foreign_read(int fd, void *data, size_t size, uint64_t *stalled_ns)
{
	return move(fd, false, data, size, stalled_ns);
}

ssize_t foreign_write(int fd, const void *data, size_t len, uint64_t *stalled_ns)
{
	return move(fd, true, (void *)(uintptr_t)data, len, stalled_ns);
}

/* ---- sockets ------------------------------------------------------------------------------- */

static void do_not_linger(int fd)
{
	const struct linger none = { 0 };

	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
}

int foreign_accept(int fd, uint64_t *stalled_ns)
{
	const struct guard g = guard_begin();
	int got = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	int r = (int)guard_end(&g, got, stalled_ns);

	if (got >= 0)
		do_not_linger(got); /* it has inherited that, too */
	if (r < 0 && got >= 0)
		(void)close(got);
	return r;
}

int foreign_close(int fd)
{
	int saved = errno;

	if (fd < 0)
		return -1;
	do_not_linger(fd);
	tick(true); /* the peer may set it again just now */
	(void)close(fd);
	tick(false);
	errno = saved;
	return -1;
}
