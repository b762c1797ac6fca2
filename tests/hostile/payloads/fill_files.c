/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fill_files.c - Use up descriptors and what the kernel counts beside them.
 *
 * usage: fill_files open|scm|epoll|inotify|pipes LIMIT [SECONDS]
 *
 * open     the same file again and again
 * scm      descriptors in flight: sent over sockets and never received
 * epoll    epoll instances watching each other in a chain
 * inotify  watches on many directories
 * pipes    pipes blown up to 1 MiB each
 *
 * Prints "N ERRNO": how many it got and what stopped it ("all" when LIMIT was reached). Holds
 * everything for SECONDS, then exits 0 when it got LIMIT, else 3.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static unsigned long use_open(unsigned long limit)
{
	unsigned long n = 0;

	while (n < limit && open("/dev/null", O_RDONLY) >= 0)
		n++;
	return n;
}

/* Send one descriptor 64 times per message, into a socket that is not read. */
static unsigned long use_scm(unsigned long limit)
{
	enum { BATCH = 64 };
	union {
		char buf[CMSG_SPACE(sizeof(int) * BATCH)];
		struct cmsghdr align;
	} control;
	unsigned long n = 0;
	int null = open("/dev/null", O_RDONLY);

	while (n < limit) {
		int pair[2];
		char byte = 0;
		struct iovec iov = { &byte, 1 };

		if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) < 0)
			return n;
		for (;;) {
			struct msghdr m = { .msg_iov = &iov,
					    .msg_iovlen = 1,
					    .msg_control = control.buf,
					    .msg_controllen = sizeof(control.buf) };
			struct cmsghdr *c = CMSG_FIRSTHDR(&m);

			c->cmsg_level = SOL_SOCKET;
			c->cmsg_type = SCM_RIGHTS;
			c->cmsg_len = CMSG_LEN(sizeof(int) * BATCH);
			for (int i = 0; i < BATCH; i++)
				((int *)(void *)CMSG_DATA(c))[i] = null;
			if (sendmsg(pair[0], &m, MSG_DONTWAIT) < 0)
				break;
			n += BATCH;
			if (n >= limit)
				return n;
		}
		if (errno != EAGAIN && errno != ENOBUFS)
			return n;
	}
	return n;
}

static unsigned long use_epoll(unsigned long limit)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int last = epoll_create1(0);
	unsigned long n = 0;

	for (; n < limit; n++) {
		int next = epoll_create1(0);

		if (next < 0)
			return n;
		/* Beyond five levels the Linux kernel answers ELOOP; continue with a wide one. */
		if (epoll_ctl(next, EPOLL_CTL_ADD, last, &ev) < 0 && errno != ELOOP)
			return n;
		last = next;
	}
	return n;
}

static unsigned long use_inotify(unsigned long limit)
{
	int fd = inotify_init1(0);

	for (unsigned long n = 0; n < limit; n++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "w%lu", n);
		if (mkdir(name, 0700) < 0 || inotify_add_watch(fd, name, IN_ALL_EVENTS) < 0)
			return n;
	}
	return limit;
}

static unsigned long use_pipes(unsigned long limit)
{
	for (unsigned long n = 0; n < limit; n++) {
		int fds[2];

		if (pipe(fds) < 0)
			return n;
		(void)fcntl(fds[1], F_SETPIPE_SZ, 1024 * 1024);
	}
	return limit;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		unsigned long (*use)(unsigned long limit);
	} modes[] = {
		{ "open", use_open },       { "scm", use_scm },     { "epoll", use_epoll },
		{ "inotify", use_inotify }, { "pipes", use_pipes },
	};

	if (argc < 3)
		return 97;
	unsigned long limit = strtoul(argv[2], NULL, 10);

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(modes[i].name, argv[1]) != 0)
			continue;
		unsigned long n = modes[i].use(limit);
		const char *why = n < limit ? strerrorname_np(errno) : "all";
		char line[64];
		int len = snprintf(line, sizeof(line), "%lu %s\n", n, why);

		(void)!write(1, line, (size_t)len);
		if (argc > 3)
			(void)sleep((unsigned int)strtoul(argv[3], NULL, 10));
		return n < limit ? 3 : 0;
	}
	return 97;
}
