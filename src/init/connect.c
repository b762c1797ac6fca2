/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connect.c - A connection to the cell's own loopback.
 *
 * It is made here and not by a process of the cell's user: a non-blocking connect can not hold pid
 * 1 up (a listener whose queue is full leaves the socket connecting), it needs no process where the
 * pids limit leaves none, and nothing in the cell can get at the descriptor on its way out. The
 * network namespace has nothing but loopback, and the address is not the client's to choose: so
 * this reaches what is in the cell, and nothing else. No byte of it is read or written here.
 */
#include "init/connect.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "base/fd.h"

int connect_begin(const struct init_connect *q)
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
