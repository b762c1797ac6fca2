/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forward.c - `caisson port --listen`: TCP connections here, carried to a port of a sandbox.
 *
 * One process per connection, which waits for the two ends of it and for nothing else; the daemon
 * bounds how many there may be. They end with their connection, not with us: who is stopped with
 * Ctrl-C takes them along, since they are of one process group.
 */
#include "remote/forward.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/num.h"
#include "remote/line.h"
#include "remote/session.h"

#define PROTOCOL "caisson-tcp"
#define PIECE 16384

/* ---- where to listen ----------------------------------------------------------------------- */

static int parse(const char *text, struct sockaddr_storage *ret, socklen_t *ret_len, struct err *e)
{
	const char *colon = strrchr(text, ':'), *port = colon ? colon + 1 : text;
	struct sockaddr_in *v4 = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret;
	char host[64] = "127.0.0.1";
	uint64_t n = 0;

	if (colon)
		(void)snprintf(host, sizeof(host), "%.*s", (int)(colon - text), text);
	*ret = (struct sockaddr_storage){ 0 };
	if (num_parse_u64(port, 0, 65535, &n, e) < 0)
		return err_wrap(e, "--listen");
	size_t len = strlen(host);

	if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons((uint16_t)n);
		*ret_len = sizeof(*v4);
		return 0;
	}
	if (len > 2 && host[0] == '[' && host[len - 1] == ']') {
		host[len - 1] = '\0';
		if (inet_pton(AF_INET6, host + 1, &v6->sin6_addr) == 1) {
			v6->sin6_family = AF_INET6;
			v6->sin6_port = htons((uint16_t)n);
			*ret_len = sizeof(*v6);
			return 0;
		}
	}
	return err_say(e, -EINVAL,
		       "--listen: '%.64s' is no address; say PORT, 127.0.0.1:PORT or [::1]:PORT",
		       text);
}

static int begin(const char *text, struct err *e)
{
	struct sockaddr_storage at;
	socklen_t len = 0;
	int on = 1;

	if (parse(text, &at, &len, e) < 0)
		return e->code;
	_fd_ int fd = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(fd, (const struct sockaddr *)&at, len) < 0 || listen(fd, 64) < 0)
		return err_set(e, -errno, "--listen: %.64s", text);
	return TAKE_FD(fd);
}

static void say_address(int fd)
{
	struct sockaddr_storage at = { 0 };
	socklen_t len = sizeof(at);
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&at;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&at;
	bool six;
	char text[INET6_ADDRSTRLEN] = "";

	(void)getsockname(fd, (struct sockaddr *)&at, &len);
	six = at.ss_family == AF_INET6;
	(void)inet_ntop(at.ss_family, six ? (const void *)&v6->sin6_addr : &v4->sin_addr, text,
			sizeof(text));
	(void)printf(six ? "[%s]:%u\n" : "%s:%u\n", text,
		     ntohs(six ? v6->sin6_port : v4->sin_port));
	(void)fflush(stdout);
}

/* ---- one connection ------------------------------------------------------------------------ */

struct half {
	char data[PIECE];
	size_t len, at;
	bool ended; /* nothing more comes */
	bool told;  /* the other side knows */
};

static bool is_empty(const struct half *h)
{
	return h->at == h->len;
}

/* 1: something moved, 0: not now, -1: it broke. */
static int fill(struct half *h, ssize_t n)
{
	if (n == -EAGAIN)
		return 0;
	if (n < 0)
		return -1;
	h->ended = n == 0;
	h->len = (size_t)n;
	h->at = 0;
	return 1;
}

static int drain(struct half *h, ssize_t n)
{
	if (n == -EAGAIN)
		return 0;
	if (n < 0)
		return -1;
	h->at += (size_t)n;
	return 1;
}

static ssize_t result(ssize_t n)
{
	return n < 0 ? (errno == EINTR ? -EAGAIN : -errno) : n;
}

static int step_up(struct half *h, int fd, struct line *l)
{
	if (is_empty(h) && !h->ended)
		return fill(h, result(recv(fd, h->data, sizeof(h->data), MSG_DONTWAIT)));
	if (!is_empty(h))
		return drain(h, line_send(l, h->data + h->at, h->len - h->at));
	if (!h->told)
		line_finish(l);
	h->told = true;
	return 0;
}

static int step_down(struct half *h, int fd, struct line *l)
{
	if (is_empty(h) && !h->ended)
		return fill(h, line_recv(l, h->data, sizeof(h->data)));
	if (!is_empty(h))
		return drain(h, result(send(fd, h->data + h->at, h->len - h->at,
					    MSG_DONTWAIT | MSG_NOSIGNAL)));
	h->told = true;
	return 0;
}

/* Until the sandbox's side has ended and all of it is out: as with the daemon, that is the end. */
static void carry(int fd, struct line *l)
{
	static struct half up, down;

	while (!down.told) {
		int a = step_up(&up, fd, l), b = step_down(&down, fd, l);

		if (a < 0 || b < 0)
			return;
		if (a > 0 || b > 0 || down.told)
			continue;
		struct pollfd p[] = {
			{ .fd = fd,
			  .events = (short)((is_empty(&up) && !up.ended ? POLLIN : 0) |
					    (is_empty(&down) ? 0 : POLLOUT)) },
			{ .fd = l->fd,
			  .events = (short)((is_empty(&down) && !down.ended ? POLLIN : 0) |
					    (is_empty(&up) ? 0 : POLLOUT)) },
		};

		if (!p[0].events)
			p[0].fd = -1; /* a hang-up would be told again and again */
		if (poll(p, ARRAY_SIZE(p), -1) < 0 && errno != EINTR)
			return;
	}
}

static _Noreturn void serve(struct session *s, const char *path, int fd)
{
	struct problem p = { 0 };
	struct line l;

	if (line_open(&l, &s->api, path, PROTOCOL, "", NULL, &p) < 0) {
		(void)fprintf(stderr, "caisson: %s\n", p.message);
		_exit(1);
	}
	carry(fd, &l);
	line_close(&l);
	_exit(0);
}

void forward_run(struct session *s, const char *path)
{
	struct err e = { 0 };
	_fd_ int at = begin(s->o.listen, &e);

	if (at < 0) {
		session_fail_err(s, &e);
		return;
	}
	(void)signal(SIGCHLD, SIG_IGN);
	say_address(at);
	for (;;) {
		_fd_ int fd = accept4(at, NULL, NULL, SOCK_CLOEXEC);

		if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
			continue;
		pid_t pid = fd < 0 ? -1 : fork();

		if (pid == 0)
			serve(s, path, fd);
		if (pid < 0) {
			(void)err_set(&e, -errno, "take a connection");
			session_fail_err(s, &e);
			return;
		}
	}
}
