/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sockdiag.c - Which user holds the other end of a TCP connection within this machine.
 *
 * Theory of operation: we ask the Linux kernel for the socket whose two ends are ours, swapped.
 * Four cases would make the answer wrong, and each is checked:
 *
 * - When no such connection exists, the kernel answers with a socket that listens on the peer's
 *   port. So the ends in the answer must be the requested ones.
 * - A socket without a holder (closed, TIME_WAIT) has no user, and the kernel reports user 0. Its
 *   inode is 0 too; the socket of a process has another inode.
 * - The peer may close meanwhile, and another process may take its port. The new socket cannot get
 *   beyond SYN_SENT while ours exists, because both would be the same connection. So the state must
 *   be that of an established connection, and ours must still be connected after the answer.
 * - A user without a number in our user namespace is reported as the overflow user, who may be
 *   ourselves. Where such users exist, that number identifies no user.
 *
 * The socket outlives the start of its holder, which then reads strangers' bytes. With a plain
 * socket an attacker who takes over the holder could list all sockets of the machine. So a filter
 * on the socket drops every message except errors and the answer to one exact question about a
 * connection to our own port; it is locked, so its holder cannot remove it. (Ending a connection
 * over sock_diag, SOCK_DESTROY, takes CAP_NET_ADMIN in the asking process.)
 *
 * The kernel answers inside send(): when send() returns, the answer is there, or none will come.
 */
#include "net/sockdiag.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/fd.h"
#include "net/addr.h"

#define LOOPBACK_INTERFACE 1 /* in every network namespace; peers may be bound to it */
#define ANSWERS_MAX 8        /* at most so many old ones: each question reads its answer */
#define OVERFLOW_UID 65534u  /* unless the administrator has chosen another */

/* One end of a connection. IPv4 as mapped in IPv6: a socket for both is reported in either form. */
struct end {
	struct in6_addr addr;
	in_port_t port; /* as on the wire */
};

struct question {
	struct nlmsghdr head;
	struct inet_diag_req_v2 req;
};

struct reply {
	struct nlmsghdr head;
	union {
		struct inet_diag_msg msg;
		struct nlmsgerr error;
	};
};

/* ---- ends ------------------------------------------------------------------------------------ */

static int get_end(int fd, int (*name)(int, struct sockaddr *, socklen_t *), struct end *ret)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} at = { 0 };
	socklen_t len = sizeof(at);

	if (name(fd, &at.any, &len) < 0)
		return -errno;
	if (at.any.sa_family == AF_INET) {
		prefix_map4(&at.v4.sin_addr, &ret->addr);
		ret->port = at.v4.sin_port;
	} else if (at.any.sa_family == AF_INET6) {
		*ret = (struct end){ at.v6.sin6_addr, at.v6.sin6_port };
	} else {
		return -EAFNOSUPPORT;
	}
	return 0;
}

static bool is_end(const struct end *end, int family, const __be32 *addr, __be16 port)
{
	struct in6_addr got;

	if (family == AF_INET)
		prefix_map4(addr, &got);
	else
		memcpy(&got, addr, sizeof(got));
	return port == end->port && IN6_ARE_ADDR_EQUAL(&got, &end->addr);
}

/* ---- asking -------------------------------------------------------------------------------- */

static void put_addr(const struct end *end, bool v4, __be32 *ret)
{
	if (v4)
		ret[0] = end->addr.s6_addr32[3];
	else
		memcpy(ret, &end->addr, sizeof(end->addr));
}

static int send_question(struct sockdiag *d, const struct end *own, const struct end *peer)
{
	bool v4 = IN6_IS_ADDR_V4MAPPED(&own->addr);
	struct question q = {
		.head = { .nlmsg_len = sizeof(q),
			  .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			  .nlmsg_flags = NLM_F_REQUEST,
			  .nlmsg_seq = ++d->seq },
		.req = { .sdiag_family = v4 ? AF_INET : AF_INET6,
			 .sdiag_protocol = IPPROTO_TCP,
			 .idiag_states = ~0u,
			 .id = { .idiag_sport = own->port,
				 .idiag_dport = peer->port,
				 .idiag_if = LOOPBACK_INTERFACE,
				 .idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE } } },
	};

	put_addr(own, v4, q.req.id.idiag_src);
	put_addr(peer, v4, q.req.id.idiag_dst);
	return send(d->fd, &q, sizeof(q), MSG_DONTWAIT) == (ssize_t)sizeof(q) ? 0 : -errno;
}

/* Ask for the socket whose own end and peer are these. */
static int ask(struct sockdiag *d, const struct end *own, const struct end *peer,
	       struct inet_diag_msg *ret)
{
	int r = send_question(d, own, peer);

	for (int i = 0; r == 0 && i < ANSWERS_MAX; i++) {
		struct reply got = { 0 };
		struct sockaddr_nl from = { 0 };
		socklen_t len = sizeof(from);
		ssize_t n = recvfrom(d->fd, &got, sizeof(got), MSG_DONTWAIT,
				     (struct sockaddr *)&from, &len);

		if (n < 0)
			return -errno;
		if (from.nl_pid != 0 || n < (ssize_t)sizeof(got.head) ||
		    got.head.nlmsg_seq != d->seq)
			continue;
		if (got.head.nlmsg_type == NLMSG_ERROR)
			return got.error.error < 0 ? got.error.error : -EBADMSG;
		if (got.head.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
		    n < (ssize_t)offsetof(struct reply, msg) + (ssize_t)sizeof(got.msg))
			return -EBADMSG;
		*ret = got.msg;
		return 0;
	}
	return r < 0 ? r : -EBADMSG;
}

/* A process holds the socket, and it is connected. We have not ended our stream, so no other states
 * are possible. */
static bool is_held(const struct inet_diag_msg *m)
{
	return m->idiag_inode != 0 &&
	       (m->idiag_state == TCP_ESTABLISHED || m->idiag_state == TCP_FIN_WAIT1 ||
		m->idiag_state == TCP_FIN_WAIT2);
}

static bool is_connected(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 &&
	       (info.tcpi_state == TCP_ESTABLISHED || info.tcpi_state == TCP_CLOSE_WAIT);
}

int sockdiag_peer(struct sockdiag *d, int fd, uid_t *ret)
{
	struct end own, peer;
	struct inet_diag_msg m;
	int r;

	if ((r = get_end(fd, getsockname, &own)) < 0 || (r = get_end(fd, getpeername, &peer)) < 0 ||
	    (r = ask(d, &peer, &own, &m)) < 0)
		return r;
	if (!is_end(&peer, m.idiag_family, m.id.idiag_src, m.id.idiag_sport) ||
	    !is_end(&own, m.idiag_family, m.id.idiag_dst, m.id.idiag_dport) || !is_held(&m) ||
	    !is_connected(fd))
		return -ENOTCONN;
	if (m.idiag_uid == d->unnamed)
		return -EOVERFLOW;
	*ret = m.idiag_uid;
	return 0;
}

/* -EAGAIN: the filter dropped the answer, which was about another socket. */
bool sockdiag_is_final(int error)
{
	return error == -ENOENT || error == -ENOTCONN || error == -EOVERFLOW || error == -EAGAIN;
}

/* ---- opening ------------------------------------------------------------------------------- */

#define LOAD(size, struct_, member)                                                                \
	BPF_STMT(BPF_LD | (size) | BPF_ABS, (uint32_t)offsetof(struct_, member))
#define IF(here, op, k, yes, no)                                                                   \
	BPF_JUMP(BPF_JMP | (op) | BPF_K, k, (uint8_t)((yes) - (here)-1), (uint8_t)((no) - (here)-1))

/* Loads use network order, in which ports are; the header has the machine's order. */
static int lock_to_port(int fd, in_port_t port)
{
	enum { DROP = 10, PASS = 11 };
	const struct sock_filter program[] = {
		LOAD(BPF_H, struct reply, head.nlmsg_flags),
		IF(1, BPF_JSET, htons(NLM_F_MULTI), DROP, 2), /* one of a list */
		LOAD(BPF_H, struct reply, head.nlmsg_type),
		IF(3, BPF_JEQ, htons(NLMSG_ERROR), PASS, 4),
		IF(4, BPF_JEQ, htons(SOCK_DIAG_BY_FAMILY), 5, DROP),
		LOAD(BPF_B, struct reply, msg.idiag_family),
		IF(6, BPF_JEQ, AF_INET, 8, 7),
		IF(7, BPF_JEQ, AF_INET6, 8, DROP),
		LOAD(BPF_H, struct reply, msg.id.idiag_dport),
		IF(9, BPF_JEQ, ntohs(port), PASS, DROP),
		[DROP] = BPF_STMT(BPF_RET | BPF_K, 0),
		[PASS] = BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
	};
	const struct sock_fprog filter = { ARRAY_SIZE(program), (struct sock_filter *)program };
	const int on = 1;

	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_LOCK_FILTER, &on, sizeof(on)) < 0)
		return -errno;
	return 0;
}

/* Whether the kernel finds @listener: then it will find connections to it. */
static int probe(struct sockdiag *d, int listener, const struct end *own)
{
	const struct end nobody = { 0 };
	struct inet_diag_msg m;
	struct stat st;
	int r = ask(d, own, &nobody, &m);

	if (r < 0)
		return r;
	if (fstat(listener, &st) < 0)
		return -errno;
	return m.idiag_inode == (uint32_t)st.st_ino ? 0 : -ENOTCONN;
}

/* The number that the kernel reports for users without one in our user namespace; -1: all users
 * have one. */
static uid_t find_unnamed(void)
{
	unsigned int first, outside, count, overflow = OVERFLOW_UID;
	char text[64];

	if (fd_read_file(AT_FDCWD, "/proc/self/uid_map", text, sizeof(text)) > 0 &&
	    sscanf(text, "%u %u %u", &first, &outside, &count) == 3 && first == 0 &&
	    count == UINT32_MAX)
		return (uid_t)-1;
	if (fd_read_file(AT_FDCWD, "/proc/sys/kernel/overflowuid", text, sizeof(text)) > 0)
		(void)sscanf(text, "%u", &overflow);
	return overflow;
}

int sockdiag_open(int listener, struct sockdiag *ret, struct err *e)
{
	struct sockdiag d = { .unnamed = find_unnamed() };
	_fd_ int fd =
		socket(AF_NETLINK, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	struct end own;
	int r;

	*ret = (struct sockdiag){ .fd = -1 };
	if (fd < 0)
		return err_set(e, -errno, "open a netlink socket for sock_diag");
	d.fd = fd;
	if ((r = get_end(listener, getsockname, &own)) < 0 || (r = probe(&d, listener, &own)) < 0)
		return err_set(e, r, "find our own socket with sock_diag");
	if ((r = lock_to_port(fd, own.port)) < 0)
		return err_set(e, r, "put a filter on the netlink socket");
	(void)TAKE_FD(fd);
	*ret = d;
	return 0;
}

void sockdiag_close(struct sockdiag *d)
{
	d->fd = fd_close(d->fd);
}
