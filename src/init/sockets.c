/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sockets.c - Connections to the cell's own loopback, and listening sockets for the gate and the
 * front.
 *
 * Init makes them, and not a process of the cell's user: a non-blocking connect cannot hold pid 1
 * up (a listener whose queue is full leaves the socket connecting), it needs no process where the
 * pids limit leaves none, and no process in the cell can reach the descriptor on its way out. The
 * network namespace has nothing but loopback, and the client does not choose the address: so a
 * connection reaches a service in the cell, and nothing else.
 *
 * A socket belongs for ever to the network namespace that it was made in: the gate accepts in the
 * cell's network without ever entering it. On a port, one socket listens on every address of both
 * families, so a service of the cell cannot have that port as well; a listener on each name's own
 * address would take a socket for each. Init reads and writes no byte of any of them.
 */
#include "init/sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "wire/gate.h"

#define BACKLOG 512
#define DNS_PORT 53

int sockets_connect(const struct init_connect *q)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	bool six = q->family == 6;

	if (q->port == 0 || q->port > 65535 || (q->family != 4 && !six))
		return -EINVAL;
	v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	v4.sin_port = v6.sin6_port = htons((uint16_t)q->port);
	_fd_ int fd =
		socket(six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	int r = six ? connect(fd, (const struct sockaddr *)&v6, sizeof(v6)) :
		      connect(fd, (const struct sockaddr *)&v4, sizeof(v4));

	if (r < 0 && errno != EINPROGRESS)
		return -errno;
	return TAKE_FD(fd);
}

/* SO_REUSEADDR: connections of an earlier listener on the port may not be over yet. */
static int make(int type, const struct sockaddr *to, socklen_t len)
{
	static const int on = 1, off = 0;
	_fd_ int fd = socket(to->sa_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0)
		return -errno;
	if (to->sa_family == AF_INET6 &&
	    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) < 0)
		return -errno;
	if (bind(fd, to, len) < 0 || (type == SOCK_STREAM && listen(fd, BACKLOG) < 0))
		return -errno;
	return TAKE_FD(fd);
}

int sockets_listen(const struct init_listen *q)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };

	if (q->kind == INIT_LISTEN_DNS_UDP || q->kind == INIT_LISTEN_DNS_TCP) {
		v4.sin_addr.s_addr = htonl(GATE_SELF4);
		v4.sin_port = htons(DNS_PORT);
		return make(q->kind == INIT_LISTEN_DNS_UDP ? SOCK_DGRAM : SOCK_STREAM,
			    (const struct sockaddr *)&v4, sizeof(v4));
	}
	if (q->kind == INIT_LISTEN_TOOLS) {
		v4.sin_addr.s_addr = htonl(GATE_SELF4);
		v4.sin_port = htons(INIT_TOOLS_PORT);
		return make(SOCK_STREAM, (const struct sockaddr *)&v4, sizeof(v4));
	}
	if (q->kind != INIT_LISTEN_TCP || q->port == 0 || q->port > 65535)
		return -EINVAL;
	v4.sin_port = v6.sin6_port = htons((uint16_t)q->port);
	int fd = make(SOCK_STREAM, (const struct sockaddr *)&v6, sizeof(v6));

	/* A Linux kernel, or a container, without IPv6. */
	return fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL ?
		       make(SOCK_STREAM, (const struct sockaddr *)&v4, sizeof(v4)) :
		       fd;
}
