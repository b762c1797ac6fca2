/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listen.c - Sockets of the cell's network for the gate.
 *
 * They are made here for the reasons of connect.c, and because a socket belongs for ever to the
 * network namespace it was made in: the gate accepts in the cell's network without ever entering
 * it. On a port, one socket listens on every address of both families, so a service of the cell can
 * not have that port as well; listening on each name's own address would take a socket for each. No
 * byte of it is read or written here.
 */
#include "init/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "wire/gate.h"

#define BACKLOG 512
#define DNS_PORT 53

/* Whoever had the port before may have left connections behind that are not quite over. */
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

int listen_make(const struct init_listen *q)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };

	if (q->kind == INIT_LISTEN_DNS_UDP || q->kind == INIT_LISTEN_DNS_TCP) {
		v4.sin_addr.s_addr = htonl(GATE_SELF4);
		v4.sin_port = htons(DNS_PORT);
		return make(q->kind == INIT_LISTEN_DNS_UDP ? SOCK_DGRAM : SOCK_STREAM,
			    (const struct sockaddr *)&v4, sizeof(v4));
	}
	if (q->kind != INIT_LISTEN_TCP || q->port == 0 || q->port > 65535)
		return -EINVAL;
	v4.sin_port = v6.sin6_port = htons((uint16_t)q->port);
	int fd = make(SOCK_STREAM, (const struct sockaddr *)&v6, sizeof(v6));

	/* A kernel, or a container, without IPv6. */
	return fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL ?
		       make(SOCK_STREAM, (const struct sockaddr *)&v4, sizeof(v4)) :
		       fd;
}
