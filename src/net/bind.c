/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bind.c - Listening sockets. See conn.h for the contracts.
 *
 * Messages name the address and the remedy: the operator sees them when a daemon does not start.
 * The sockets are non-blocking, since a connection that was ready may be gone when it is accepted.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "net/addr.h"
#include "net/conn.h"

#define UNSENT_MAX (128 * 1024)

static const char *tcp_hint(int code)
{
	switch (code) {
	case EADDRINUSE:
		return "; another program listens there ('ss -ltnp' shows which): stop it or choose another port";
	case EADDRNOTAVAIL:
		return "; no interface of this machine has that address ('ip address' lists them)";
	case EACCES:
		return "; an ordinary user may not take this port: choose one from 1024 up";
	case EAFNOSUPPORT:
		return "; this Linux kernel has no IPv6: choose an IPv4 address";
	}
	return "";
}

static int tcp_error(struct err *e, int code, const char *addr)
{
	return err_say(e, -code, "listen on %s: %s%s", addr, strerror(code), tcp_hint(code));
}

void listener_limit_unsent(int fd)
{
	const int bytes = UNSENT_MAX;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof(bytes));
}

int listener_tcp(const char *addr, struct err *e)
{
	struct sockaddr_storage to;
	const int on = 1, off = 0;
	int len = addr_parse(addr, &to, e);

	if (len < 0)
		return len;
	_fd_ int fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return tcp_error(e, errno, addr);
	/* [::] serves IPv4 too, whatever the machine's default is. */
	if (to.ss_family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	listener_limit_unsent(fd);
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(fd, (struct sockaddr *)&to, (socklen_t)len) < 0 || listen(fd, SOMAXCONN) < 0)
		return tcp_error(e, errno, addr);
	return TAKE_FD(fd);
}

/* Whether a program accepts connections at @at: 1, 0, or -errno when that is unknown. */
static int is_live(const struct sockaddr_un *at)
{
	_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)at, sizeof(*at)) == 0)
		return 1;
	switch (errno) {
	case EAGAIN:     /* its backlog is full */
	case EPROTOTYPE: /* a socket of another type, with an owner */
		return 1;
	case ECONNREFUSED:
	case ENOENT:
		return 0;
	}
	return -errno;
}

/* Remove the socket file of a program that ended, and nothing else, from @path. */
static int remove_stale(const struct sockaddr_un *at, struct err *e)
{
	const char *path = at->sun_path;
	struct stat probed, now;

	if (lstat(path, &probed) < 0)
		return errno == ENOENT ? 0 : err_set(e, -errno, "look at '%s'", path);
	if (!S_ISSOCK(probed.st_mode))
		return err_say(e, -EEXIST,
			       "'%s' exists and is not a socket; remove it or choose another path",
			       path);
	int r = is_live(at);

	if (r > 0)
		return err_say(
			e, -EADDRINUSE,
			"another program serves the socket '%s'; stop it or choose another path",
			path);
	if (r < 0)
		return err_set(e, r, "check who serves the socket '%s'", path);
	/* Not a socket that another program has put there meanwhile. */
	if (lstat(path, &now) < 0)
		return errno == ENOENT ? 0 : err_set(e, -errno, "look at '%s'", path);
	if (now.st_dev != probed.st_dev || now.st_ino != probed.st_ino)
		return err_say(e, -EADDRINUSE, "another program just took the socket '%s'", path);
	if (unlink(path) < 0)
		return err_set(e, -errno, "remove the stale socket '%s'", path);
	return 0;
}

int listener_unix(const char *path, unsigned int mode, struct err *e)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	size_t len = strlen(path);

	if (len == 0 || len >= sizeof(at.sun_path))
		return err_say(e, -ENAMETOOLONG,
			       "the path of a unix socket has 1 to %zu bytes, '%s' has %zu",
			       sizeof(at.sun_path) - 1, path, len);
	memcpy(at.sun_path, path, len + 1);
	_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return err_set(e, -errno, "make a unix socket");
	int r = remove_stale(&at, e);

	if (r < 0)
		return r;
	/* Through the umask, so that the mode is right from the first moment on. */
	mode_t old = umask((mode_t)(~mode & 0777));

	r = bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ? -errno : 0;
	(void)umask(old);
	if (r < 0)
		return err_set(e, r, "bind the unix socket '%s'", path);
	if (listen(fd, SOMAXCONN) < 0) {
		r = -errno;
		(void)unlink(path);
		return err_set(e, r, "listen on the unix socket '%s'", path);
	}
	return TAKE_FD(fd);
}
