/* SPDX-License-Identifier: Apache-2.0 */
/* systemd.c - Take sockets from a service manager, and notify it. */
#include "front/http/systemd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/num.h"
#include "client/program.h"
#include "front/cell/keep.h"
#include "net/conn.h"

#define FIRST_FD 3

/* ---- sockets ------------------------------------------------------------------------------- */

static int option(int fd, int name)
{
	int value = -1;
	socklen_t len = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, name, &value, &len) < 0 ? -1 : value;
}

static int take_tcp(int fd, const struct sockaddr_storage *at, struct systemd_sockets *s,
		    struct err *e)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)at;
	const struct sockaddr_in *four = (const struct sockaddr_in *)at;
	char text[INET6_ADDRSTRLEN];
	bool v6 = at->ss_family == AF_INET6;

	if (!inet_ntop(at->ss_family, v6 ? (const void *)&six->sin6_addr : &four->sin_addr, text,
		       sizeof(text)))
		return err_set(e, -errno, "LISTEN_FDS: the address of descriptor %d", fd);
	(void)snprintf(s->address, sizeof(s->address), v6 ? "[%s]:%u" : "%s:%u", text,
		       ntohs(v6 ? six->sin6_port : four->sin_port));
	s->tcp = fd;
	return 0;
}

static int take_local(int fd, const struct sockaddr_un *at, socklen_t len,
		      struct systemd_sockets *s)
{
	size_t n = len > offsetof(struct sockaddr_un, sun_path) ?
			   len - offsetof(struct sockaddr_un, sun_path) :
			   0;

	if (n > 0 && n < sizeof(s->path)) {
		memcpy(s->path, at->sun_path, n);
		s->path[n] = '\0';
		if (!s->path[0])
			s->path[0] = '@';
	}
	s->local = fd;
	return 0;
}

static int take(int fd, struct systemd_sockets *s, struct err *e)
{
	union {
		struct sockaddr_storage any;
		struct sockaddr_un un;
	} at = { 0 };
	socklen_t len = sizeof(at);
	int flags = fcntl(fd, F_GETFL);

	if (option(fd, SO_ACCEPTCONN) != 1 || option(fd, SO_TYPE) != SOCK_STREAM)
		return err_say(e, -EINVAL,
			       "LISTEN_FDS: descriptor %d is not a listening stream socket", fd);
	if (getsockname(fd, (struct sockaddr *)&at, &len) < 0 || flags < 0 ||
	    fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		return err_set(e, -errno, "LISTEN_FDS: take descriptor %d", fd);
	if (at.any.ss_family == AF_UNIX && s->local < 0)
		return take_local(fd, &at.un, len, s);
	if ((at.any.ss_family == AF_INET || at.any.ss_family == AF_INET6) && s->tcp < 0) {
		listener_limit_unsent(fd);
		return take_tcp(fd, &at.any, s, e);
	}
	return err_say(
		e, -EINVAL,
		"LISTEN_FDS: descriptor %d is one too many: one TCP and one unix socket are served",
		fd);
}

int systemd_sockets(pid_t keeper, struct systemd_sockets *ret, struct err *e)
{
	const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
	uint64_t p = 0, n = 0;
	int r = 0;

	*ret = (struct systemd_sockets){ .tcp = -1, .local = -1 };
	/* Sockets for another process, which left the variables. */
	if (!pid || !count || num_parse_u64(pid, 1, INT32_MAX, &p, NULL) < 0 ||
	    (p != (uint64_t)getpid() && p != (uint64_t)keeper))
		return 0;
	if (num_parse_u64(count, 0, 16, &n, NULL) < 0)
		return err_say(e, -EINVAL, "LISTEN_FDS: '%s' is not a number of sockets", count);
	for (uint64_t i = 0; i < n && r == 0; i++)
		r = take(FIRST_FD + (int)i, ret, e);
	(void)unsetenv("LISTEN_PID");
	(void)unsetenv("LISTEN_FDS");
	(void)unsetenv("LISTEN_FDNAMES");
	return r;
}

/* ---- notifications ------------------------------------------------------------------------- */

void systemd_say(struct systemd *s, enum keeper_word word)
{
	static const char *const words[] = KEEPER_WORDS;

	if (s->keep->watch.fd >= 0)
		keep_say(s->keep, word);
	else
		notify_say(s->fd, words[word]);
}

static void on_watchdog(struct timer *t)
{
	struct systemd *s = t->arg;

	systemd_say(s, KEEPER_ALIVE);
	timer_set(s->loop, t, clock_now_ns() + s->watchdog_ns);
}

void systemd_open(struct systemd *s, struct keep *keep)
{
	const char *usec = getenv("WATCHDOG_USEC");
	uint64_t us = 0;

	s->keep = keep;
	s->fd = notify_open();
	if (usec && num_parse_u64(usec, 1, UINT64_MAX / 1000, &us, NULL) == 0)
		s->watchdog_ns = us * 1000 / 2;
	(void)unsetenv("WATCHDOG_USEC");
}

void systemd_ready(struct systemd *s, struct loop *l)
{
	s->loop = l;
	systemd_say(s, KEEPER_READY);
	if (!s->watchdog_ns)
		return;
	s->watchdog.fn = on_watchdog;
	s->watchdog.arg = s;
	timer_set(l, &s->watchdog, clock_now_ns() + s->watchdog_ns);
}
