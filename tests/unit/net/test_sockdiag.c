/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_sockdiag.c - The user at the other end: of every kind of loopback connection, of another
 * user, of a closed one; and that the descriptor gives its holder nothing else.
 */
#include "net/sockdiag.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../unit.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "child.h"
#include "net/addr.h"
#include "net/conn.h"

struct pair {
	int listener, client, server;
	struct sockaddr_storage at;
	socklen_t len;
};

static struct pair pair_listen(const char *addr)
{
	struct pair p = { .client = -1, .server = -1, .len = sizeof(p.at) };
	struct err e = { 0 };

	p.listener = listener_tcp(addr, &e);
	if (p.listener < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(getsockname(p.listener, (struct sockaddr *)&p.at, &p.len), 0);
	return p;
}

/* A client of @to (NULL: the listener's address), with @fd or a new socket. */
static void pair_connect(struct pair *p, const char *to, int fd)
{
	struct sockaddr_storage at = p->at;

	if (to) {
		assert_true(addr_parse(to, &at, NULL) > 0);
		((struct sockaddr_in *)&at)->sin_port = ((struct sockaddr_in *)&p->at)->sin_port;
	}
	p->client = fd >= 0 ? fd : socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(p->client, (struct sockaddr *)&at, sizeof(at)), 0);
	p->server = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(p->server >= 0);
}

/* A socket at an address on which no other program of the machine has ports. */
static int client_at(struct sockaddr_in *from)
{
	socklen_t len = sizeof(*from);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*from = (struct sockaddr_in){ .sin_family = AF_INET,
				      .sin_addr = { htonl(0x7f000000u |
							  ((uint32_t)getpid() & 0xffffff)) } };
	assert_int_equal(bind(fd, (struct sockaddr *)from, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)from, &len), 0);
	return fd;
}

static void pair_end(struct pair *p)
{
	p->client = fd_close(p->client);
	p->server = fd_close(p->server);
}

static void open_for(const struct pair *p, struct sockdiag *d)
{
	struct err e = { 0 };

	if (sockdiag_open(p->listener, d, &e) < 0)
		fail_msg("%s", e.msg);
}

TEST(ways)
{
	static const struct {
		const char *listen, *to;
	} rows[] = {
		{ "127.0.0.1:0", NULL },
		{ "127.3.4.5:0", NULL },
		{ "[::1]:0", NULL },
		{ "[::ffff:127.0.0.1]:0", NULL },
		{ "[::ffff:127.0.0.1]:0", "127.0.0.1:0" },
		{ "127.0.0.1:0", "[::ffff:127.0.0.1]:0" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct pair p = pair_listen(rows[i].listen);
		struct sockdiag d;
		uid_t uid = 12345;

		open_for(&p, &d);
		for (int k = 0; k < 3; k++) {
			pair_connect(&p, rows[i].to, -1);
			assert_int_equal(sockdiag_peer(&d, p.server, &uid), 0);
			assert_int_equal(uid, geteuid());
			/* One that has ended its side and waits for the answer is still there. */
			assert_int_equal(shutdown(p.client, SHUT_WR), 0);
			assert_int_equal(sockdiag_peer(&d, p.server, &uid), 0);
			assert_int_equal(uid, geteuid());
			pair_end(&p);
		}
		fd_close(p.listener);
		sockdiag_close(&d);
	}
}

/* A socket belongs to its maker, even when another process holds it later. */
TEST(another_user)
{
	struct pair p = pair_listen("127.0.0.1:0");
	struct sockdiag d;
	uid_t uid = 12345;
	int way[2];

	if (geteuid() != 0) {
		(void)printf("# skipped: only root can be another user\n");
		skip();
	}
	open_for(&p, &d);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, way), 0);
	pid_t pid = fork();

	if (pid == 0) {
		fd_close(way[0]);
		CHILD_CHECK(setgroups(0, NULL) == 0 && setgid(CHILD_NOBODY) == 0 &&
			    setuid(CHILD_NOBODY) == 0);
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		CHILD_CHECK(connect(fd, (struct sockaddr *)&p.at, p.len) == 0);
		char byte;

		(void)!read(way[1], &byte, 1);
		_exit(0);
	}
	struct pollfd ready = { .fd = p.listener, .events = POLLIN };

	assert_int_equal(poll(&ready, 1, 1000 * CHILD_DEADLINE_S), 1);
	p.server = accept4(p.listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(p.server >= 0);
	assert_int_equal(sockdiag_peer(&d, p.server, &uid), 0);
	assert_int_equal(uid, CHILD_NOBODY);
	/* Told as "a user without a name" where our namespace does not have all users. */
	d.unnamed = CHILD_NOBODY;
	assert_int_equal(sockdiag_peer(&d, p.server, &uid), -EOVERFLOW);
	fd_close(way[0]);
	fd_close(way[1]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	pair_end(&p);
	fd_close(p.listener);
	sockdiag_close(&d);
}

/* Gone: the Linux kernel would answer user 0, or a listener on the same port. */
TEST(nobody)
{
	struct pair p = pair_listen("127.0.0.1:0");
	struct sockdiag d;
	uid_t uid = 12345;

	open_for(&p, &d);
	pair_connect(&p, NULL, -1);
	p.client = fd_close(p.client);
	assert_true(sockdiag_is_final(sockdiag_peer(&d, p.server, &uid)));
	fd_close(p.server);
	/* Reset, so that its port is free at once: */
	struct sockaddr_in from;

	pair_connect(&p, NULL, client_at(&from));
	const struct linger now = { .l_onoff = 1 };

	assert_int_equal(setsockopt(p.client, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
	p.client = fd_close(p.client);
	_fd_ int other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const int on = 1;

	assert_int_equal(setsockopt(other, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
	assert_int_equal(bind(other, (struct sockaddr *)&from, sizeof(from)), 0);
	assert_int_equal(listen(other, 1), 0);
	assert_true(sockdiag_is_final(sockdiag_peer(&d, p.server, &uid)));
	assert_int_equal(uid, 12345);
	pair_end(&p);
	assert_int_equal(sockdiag_peer(&d, -1, &uid), -EBADF);
	fd_close(p.listener);
	sockdiag_close(&d);
}

/* Somebody else's connection from the port of one that was reset is not taken for it. */
TEST(port_taken_again)
{
	struct pair p = pair_listen("127.0.0.1:0"), second = p;
	struct sockdiag d;
	struct sockaddr_in from;
	const struct linger now = { .l_onoff = 1 };
	uid_t uid = 12345;

	open_for(&p, &d);
	pair_connect(&p, NULL, client_at(&from));
	assert_int_equal(send(p.client, "x", 1, 0), 1);
	assert_int_equal(setsockopt(p.client, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
	fd_close(p.client);

	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof(from)), 0);
	pair_connect(&second, NULL, fd);
	assert_true(sockdiag_is_final(sockdiag_peer(&d, p.server, &uid)));
	assert_int_equal(uid, 12345);
	assert_int_equal(sockdiag_peer(&d, second.server, &uid), 0);
	p.client = -1;
	pair_end(&p);
	pair_end(&second);
	fd_close(p.listener);
	sockdiag_close(&d);
}

/* ---- what else the descriptor is good for -------------------------------------------------- */

/* Messages that arrive, of which errors do not count. */
static int hear(int fd)
{
	char data[65536];
	int n = 0;
	ssize_t got;

	while ((got = recv(fd, data, sizeof(data), MSG_DONTWAIT)) > 0)
		n += ((const struct nlmsghdr *)data)->nlmsg_type != NLMSG_ERROR;
	return n;
}

static int ask_inet(int fd, int flags, int protocol, const struct inet_diag_sockid *id)
{
	struct {
		struct nlmsghdr head;
		struct inet_diag_req_v2 req;
	} q = { { sizeof(q), SOCK_DIAG_BY_FAMILY, (uint16_t)(NLM_F_REQUEST | flags), 1, 0 },
		{ .sdiag_family = AF_INET,
		  .sdiag_protocol = (uint8_t)protocol,
		  .idiag_states = ~0u } };

	if (id)
		q.req.id = *id;
	assert_int_equal(send(fd, &q, sizeof(q), 0), sizeof(q));
	return hear(fd);
}

static int list_unix(int fd)
{
	struct {
		struct nlmsghdr head;
		struct unix_diag_req req;
	} q = { { sizeof(q), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP, 1, 0 },
		{ .sdiag_family = AF_UNIX, .udiag_states = ~0u, .udiag_show = UDIAG_SHOW_NAME } };

	assert_int_equal(send(fd, &q, sizeof(q), 0), sizeof(q));
	return hear(fd);
}

TEST(nothing_else)
{
	struct pair p = pair_listen("127.0.0.1:0"), other = pair_listen("127.0.0.1:0");
	struct inet_diag_sockid id = { .idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE } };
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	struct sockdiag d;
	_fd_ int plain = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

	open_for(&p, &d);
	pair_connect(&p, NULL, -1);
	pair_connect(&other, NULL, -1);
	assert_int_equal(getsockname(other.client, (struct sockaddr *)&from, &len), 0);
	id.idiag_src[0] = id.idiag_dst[0] = from.sin_addr.s_addr;
	id.idiag_sport = from.sin_port;
	id.idiag_dport = ((struct sockaddr_in *)&other.at)->sin_port;
	/* A plain socket of its kind gets lists, and connections to other ports. */
	assert_true(ask_inet(plain, NLM_F_DUMP, IPPROTO_TCP, NULL) > 0);
	assert_true(ask_inet(plain, 0, IPPROTO_TCP, &id) == 1);
	assert_true(list_unix(plain) > 0);
	/* This one does not, also when the first of a list is to its own port. */
	assert_int_equal(ask_inet(d.fd, NLM_F_DUMP, IPPROTO_TCP, NULL), 0);
	assert_int_equal(ask_inet(d.fd, NLM_F_DUMP, IPPROTO_UDP, NULL), 0);
	assert_int_equal(ask_inet(d.fd, 0, IPPROTO_TCP, &id), 0);
	id = (struct inet_diag_sockid){ .idiag_dport = ((struct sockaddr_in *)&p.at)->sin_port };
	assert_true(ask_inet(plain, NLM_F_DUMP, IPPROTO_TCP, &id) > 0);
	assert_int_equal(ask_inet(d.fd, NLM_F_DUMP, IPPROTO_TCP, &id), 0);
	assert_int_equal(list_unix(d.fd), 0);
	/* And the filter stays. */
	struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, UINT32_MAX);
	const struct sock_fprog program = { 1, &all };
	int off = 0;

	assert_int_equal(setsockopt(d.fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)),
			 -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(setsockopt(d.fd, SOL_SOCKET, SO_DETACH_FILTER, &off, sizeof(off)), -1);
	assert_int_equal(setsockopt(d.fd, SOL_SOCKET, SO_LOCK_FILTER, &off, sizeof(off)), -1);
	/* None of that was in the way of what it is for. */
	uid_t uid = 12345;

	assert_int_equal(sockdiag_peer(&d, p.server, &uid), 0);
	assert_int_equal(uid, geteuid());
	pair_end(&p);
	pair_end(&other);
	fd_close(p.listener);
	fd_close(other.listener);
	sockdiag_close(&d);
}

TEST(bad_listener)
{
	struct err e = { 0 };
	struct sockdiag d;
	_fd_ int local = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	_fd_ int idle = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(sockdiag_open(local, &d, &e) < 0);
	assert_int_equal(d.fd, -1);
	assert_true(sockdiag_open(idle, &d, &e) < 0);
	assert_int_equal(d.fd, -1);
	assert_non_null(strstr(e.msg, "sock_diag"));
}

TEST(cost)
{
	struct pair p = pair_listen("127.0.0.1:0");
	struct sockdiag d;
	uid_t uid;
	const int n = 20000;

	open_for(&p, &d);
	pair_connect(&p, NULL, -1);
	uint64_t begin = clock_now_ns();

	for (int i = 0; i < n; i++)
		assert_int_equal(sockdiag_peer(&d, p.server, &uid), 0);
	(void)printf("# %.2f microseconds\n", (double)(clock_now_ns() - begin) / 1000 / n);
	pair_end(&p);
	fd_close(p.listener);
	sockdiag_close(&d);
}
