/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drain.c - Take as many as there are of something that the kernel counts per user or for the whole
 * machine.
 *
 *   drain WHAT MAX   prints "WHAT taken errno NAME" (errno: of the refusal that ended it; 0: MAX
 * was reached), then "ready", and keeps all of it until its input ends
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <mqueue.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "say.h"

#define PER_FILLER 500

/* Each takes one more, and returns a negative number with errno when all are taken. */

static long inotify(long i)
{
	(void)i;
	return inotify_init();
}

static long watches(long i)
{
	static int fd = -1;
	char name[64];

	if (fd < 0)
		fd = inotify_init();
	(void)snprintf(name, sizeof(name), "/tmp/drain.%d.%ld", (int)getpid(), i);
	int file = open(name, O_CREAT | O_EXCL | O_WRONLY, 0600);

	if (file < 0)
		return -1;
	(void)close(file);
	return inotify_add_watch(fd, name, IN_MODIFY);
}

static long pty(long i)
{
	(void)i;
	return posix_openpt(O_RDWR | O_NOCTTY);
}

static long queue(long i)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "/drain.%d.%ld", (int)getpid(), i);
	mqd_t q = mq_open(name, O_CREAT | O_EXCL | O_RDWR, 0600, NULL);

	if (q >= 0)
		(void)mq_unlink(name); /* it is there as long as it is open */
	return q;
}

static long queued_signal(long i)
{
	sigset_t set;
	union sigval value = { .sival_int = (int)i };

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGRTMIN);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	return sigqueue(getpid(), SIGRTMIN, value);
}

static long timer(long i)
{
	struct sigevent e = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN };
	timer_t t;

	(void)i;
	return timer_create(CLOCK_MONOTONIC, &e, &t);
}

/* A pipe of 256 pages. */
static long pipe_pages(long i)
{
	int ends[2];

	(void)i;
	return pipe(ends) < 0 ? -1 : fcntl(ends[0], F_SETPIPE_SZ, 1 << 20);
}

/* A descriptor in flight: sent and not received. */
static long in_flight(long i)
{
	static int pair[2] = { -1, -1 };
	char byte = 0;
	struct iovec iov = { &byte, 1 };
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} c = { .room = { 0 } };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof(c)
	};

	if (i % 100 == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
		return -1;
	c.align.cmsg_level = SOL_SOCKET;
	c.align.cmsg_type = SCM_RIGHTS;
	c.align.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&c.align), &pair[0], sizeof(int));
	return sendmsg(pair[0], &m, MSG_DONTWAIT);
}

static long file_lock(long i)
{
	static int fd = -1;
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 2 * i, .l_len = 1 };

	if (fd < 0)
		fd = open("/tmp", O_TMPFILE | O_RDWR, 0600);
	return fcntl(fd, F_SETLK, &l);
}

static long segment(long i)
{
	(void)i;
	return shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
}

static long semaphore(long i)
{
	(void)i;
	return semget(IPC_PRIVATE, 1, IPC_CREAT | 0600);
}

static long locked_page(long i)
{
	static char *pages;

	if (!pages)
		pages = mmap(NULL, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			     -1, 0);
	return mlock(pages + 4096 * i, 4096);
}

/* Watches of one epoll instance: one eventfd, by many descriptors, in as many instances as it
 * takes. */
static long epoll_watch(long i)
{
	static int ep = -1, target = -1;
	struct epoll_event e = { .events = EPOLLIN };
	int fd;

	if (target < 0)
		target = (int)syscall(SYS_eventfd2, 0, 0);
	if (i % 100 == 0)
		ep = epoll_create1(0);
	fd = fcntl(target, F_DUPFD, 500 + (int)(i % 100));
	if (ep < 0 || fd < 0)
		return -1;
	long r = epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e);

	/* Registered by file, it stays when the number is closed: the file is open elsewhere. */
	(void)close(fd);
	return r;
}

/* Open files, PER_FILLER of them in a process that only holds them. */
static long files(long i)
{
	int ends[2];
	char ok = 0;

	(void)i;
	if (pipe(ends) < 0)
		return -1;
	pid_t pid = fork();

	if (pid == 0) {
		int n = 0;

		while (n < PER_FILLER && open("/dev/null", O_RDONLY) >= 0)
			n++;
		(void)!write(ends[1], "x", n == PER_FILLER);
		(void)pause();
		_exit(0);
	}
	(void)close(ends[1]);
	if (pid < 0 || read(ends[0], &ok, 1) != 1)
		return -1;
	(void)close(ends[0]);
	return 0;
}

/* A connection over the loopback that is full in its direction, and closed without being read. */
static long orphan(long i)
{
	static int listener = -1;
	static struct sockaddr_in at = { .sin_family = AF_INET };
	static const char much[65536];
	socklen_t n = sizeof(at);

	if (i == 0) {
		at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		listener = socket(AF_INET, SOCK_STREAM, 0);
		if (bind(listener, (struct sockaddr *)&at, n) < 0 || listen(listener, 1024) < 0 ||
		    getsockname(listener, (struct sockaddr *)&at, &n) < 0)
			return -1;
	}
	int s = socket(AF_INET, SOCK_STREAM, 0);

	if (s < 0 || connect(s, (struct sockaddr *)&at, n) < 0 || accept(listener, NULL, NULL) < 0)
		return -1;
	for (int k = 0; k < 256 && send(s, much, sizeof(much), MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
	     k++)
		;
	return close(s);
}

static const struct {
	const char *name;
	long (*take)(long i);
} table[] = {
	{ "inotify", inotify },   { "watches", watches },       { "pty", pty },
	{ "mqueue", queue },      { "signals", queued_signal }, { "timers", timer },
	{ "pipes", pipe_pages },  { "inflight", in_flight },    { "locks", file_lock },
	{ "segments", segment },  { "semaphores", semaphore },  { "memlock", locked_page },
	{ "epoll", epoll_watch }, { "files", files },           { "orphans", orphan },
};

static int drain(const char *what, long max)
{
	char byte;

	for (size_t k = 0; k < sizeof(table) / sizeof(table[0]); k++) {
		long n = 0;

		if (strcmp(table[k].name, what) != 0)
			continue;
		errno = 0;
		while (n < max && table[k].take(n) >= 0)
			n++;
		int error = n < max ? errno : 0;

		(void)printf("%s %ld %d %s\nready\n", what, n, error,
			     error ? strerrorname_np(error) : "-");
		(void)fflush(stdout);
		while (read(0, &byte, 1) > 0)
			;
		(void)signal(SIGTERM, SIG_IGN);
		(void)kill(0, SIGTERM); /* those that hold files */
		return 0;
	}
	return 2;
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	(void)setpgid(0, 0);
	return drain(argv[1], strtol(argv[2], NULL, 10));
}
