/* SPDX-License-Identifier: Apache-2.0 */
/*
 * addr.c - Socket addresses from and to text, ranges of them, and sockets that listen on them.
 *
 * Messages name the address and the remedy: the operator sees them when a daemon does not start.
 * Listening sockets are non-blocking, since a connection that was ready may be gone when it is
 * accepted.
 */
#include "net/addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/num.h"
#include "net/conn.h"

#define UNSENT_MAX (128 * 1024)

/* Split "host:port" or "[host]:port"; *ret_port: where the port begins, NULL without one. */
static int split(const char *text, char *host, size_t size, bool *ret_v6, const char **ret_port)
{
	const char *end = strrchr(text, ':');
	size_t len = end ? (size_t)(end - text) : strlen(text);

	*ret_port = end ? end + 1 : NULL;
	*ret_v6 = len > 0 && text[0] == '[';
	if (*ret_v6) {
		if (len < 2 || text[len - 1] != ']')
			return -EINVAL;
		text++;
		len -= 2;
	}
	if (len >= size)
		return -EINVAL;
	memcpy(host, text, len);
	host[len] = '\0';
	return 0;
}

/* A mistyped address as errors quote it: printable and short. */
static const char *quoted(const char *text, char *out, size_t size)
{
	size_t n = 0;

	for (; *text && n + 1 < size; text++)
		out[n++] = *text > 0x20 && *text < 0x7f ? *text : '?';
	out[n] = '\0';
	return out;
}

int addr_parse(const char *text, struct sockaddr_storage *ret, struct err *e)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	char host[INET6_ADDRSTRLEN], shown[80];
	const char *port_text;
	uint64_t port;
	bool is_v6;
	int r = split(text, host, sizeof(host), &is_v6, &port_text);

	quoted(text, shown, sizeof(shown));
	if (r == 0 && !is_v6 && host[0] == '\0')
		return err_say(e, -EINVAL,
			       "'%s' names no address; 127.0.0.1%s is this machine only, "
			       "0.0.0.0%s every interface",
			       shown, shown, shown);
	if (r < 0 || inet_pton(is_v6 ? AF_INET6 : AF_INET, host,
			       is_v6 ? (void *)&v6.sin6_addr : (void *)&v4.sin_addr) != 1)
		return err_say(e, -EINVAL,
			       "'%s' is not a numeric address with a port; write it as "
			       "127.0.0.1:8001 or [::1]:8001",
			       shown);
	if (!port_text || num_parse_u64(port_text, 0, UINT16_MAX, &port, NULL) < 0)
		return err_say(e, -EINVAL, "'%s' has no port between 0 and 65535 after its address",
			       shown);
	v4.sin_port = v6.sin6_port = htons((uint16_t)port);
	memset(ret, 0, sizeof(*ret));
	if (is_v6)
		memcpy(ret, &v6, sizeof(v6));
	else
		memcpy(ret, &v4, sizeof(v4));
	return is_v6 ? (int)sizeof(v6) : (int)sizeof(v4);
}

void addr_peer(const struct sockaddr_storage *from, struct peer *ret)
{
	struct sockaddr_in6 v6;
	struct sockaddr_in v4;
	bool is_v4 = from->ss_family == AF_INET;
	unsigned int port;

	memcpy(&v4, from, sizeof(v4));
	memcpy(&v6, from, sizeof(v6));
	if (from->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
		/* A socket for both families shows the client that one for IPv4 would show. */
		memcpy(&v4.sin_addr, &v6.sin6_addr.s6_addr[12], sizeof(v4.sin_addr));
		v4.sin_port = v6.sin6_port;
		is_v4 = true;
	}
	if (is_v4) {
		port = ntohs(v4.sin_port);
		(void)inet_ntop(AF_INET, &v4.sin_addr, ret->host, sizeof(ret->host));
		ret->is_loopback = ntohl(v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
		memcpy(ret->net, ret->host, sizeof(ret->net));
	} else {
		port = ntohs(v6.sin6_port);
		(void)inet_ntop(AF_INET6, &v6.sin6_addr, ret->host, sizeof(ret->host));
		ret->is_loopback = IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
		/* One customer has all addresses of its first 64 bits. */
		memset(&v6.sin6_addr.s6_addr[8], 0, 8);
		(void)inet_ntop(AF_INET6, &v6.sin6_addr, ret->net, sizeof(ret->net));
	}
	(void)snprintf(ret->text, sizeof(ret->text), is_v4 ? "%s:%u" : "[%s]:%u", ret->host, port);
}

int addr_is_loopback(const char *addr, struct err *e)
{
	struct sockaddr_storage to;
	struct peer p;
	int r = addr_parse(addr, &to, e);

	if (r < 0)
		return r;
	addr_peer(&to, &p);
	return p.is_loopback;
}

/* ---- ranges of addresses -------------------------------------------------------------------- */

void prefix_map4(const void *v4, struct in6_addr *ret)
{
	*ret = (struct in6_addr){ .s6_addr = { [10] = 0xff, [11] = 0xff } };
	memcpy(&ret->s6_addr[12], v4, 4);
}

bool prefix_parse(const char *text, struct prefix *ret)
{
	const char *slash = strchr(text, '/');
	char net[INET6_ADDRSTRLEN];
	size_t len = slash ? (size_t)(slash - text) : strlen(text);
	unsigned char v4[4];
	uint64_t bits = 128, most = 128;

	if (len == 0 || len >= sizeof(net))
		return false;
	memcpy(net, text, len);
	net[len] = '\0';
	if (inet_pton(AF_INET, net, v4) == 1) {
		prefix_map4(v4, &ret->net);
		most = 32;
	} else if (inet_pton(AF_INET6, net, &ret->net) != 1) {
		return false;
	}
	if (slash) {
		if (!num_digits(slash + 1, strlen(slash + 1), &bits) || bits > most)
			return false;
		bits += 128 - most;
	}
	ret->bits = (uint8_t)bits;
	for (unsigned int i = ret->bits; i < 128; i++)
		if (ret->net.s6_addr[i / 8] & 0x80u >> i % 8)
			return false;
	return true;
}

bool prefix_holds(const struct in6_addr *a, const struct prefix *p)
{
	unsigned int whole = p->bits / 8, rest = p->bits % 8;

	if (memcmp(a->s6_addr, p->net.s6_addr, whole) != 0)
		return false;
	if (rest == 0)
		return true;
	return (a->s6_addr[whole] ^ p->net.s6_addr[whole]) >> (8 - rest) == 0;
}

/* ---- listening sockets ---------------------------------------------------------------------- */

static const char *tcp_hint(int code)
{
	switch (code) {
	case EADDRINUSE:
		return "; another program listens there ('ss -ltnp' shows which): stop it or "
		       "choose another port";
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
