/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fill_memory.c - Take memory in every way that a kernel gives it, up to so many MiB, then hold it.
 *
 * usage: fill_memory MODE MIB [SECONDS]
 *
 * touch     anonymous memory, page by page
 * populate  mmap with MAP_POPULATE, in one call
 * children  eight children with an eighth each
 * shm       a file in /dev/shm
 * tmp       a file in /tmp
 * memfd     an anonymous file
 * sysv      System V shared memory
 * crumbs    the same in small pieces: the last bit of memory, which no process holds
 * pipe      full pipes
 * socket    full unix socket pairs
 * udp, tcp  what was sent over the loopback and nobody reads
 *
 * Exits 0 after holding it; 3 when the kernel said no before that much was there. Prints how many
 * MiB it has got, whatever happens.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (1024ul * 1024)

static char block[65536];

static size_t take_touch(size_t want)
{
	size_t got = 0;

	for (; got < want; got += MIB) {
		char *p =
			mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			break;
		(void)memset(p, 1, MIB);
	}
	return got;
}

static size_t take_populate(size_t want)
{
	void *p = mmap(NULL, want, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	return p == MAP_FAILED ? 0 : want;
}

static size_t take_children(size_t want)
{
	for (int i = 0; i < 8; i++)
		if (fork() == 0) {
			(void)take_touch(want / 8);
			for (;;)
				(void)pause();
		}
	(void)sleep(1);
	return want;
}

static size_t fill(int fd, size_t want)
{
	size_t got = 0;

	while (fd >= 0 && got < want) {
		ssize_t n = write(fd, block, sizeof(block));

		if (n <= 0)
			break;
		got += (size_t)n;
	}
	return got;
}

static size_t take_sysv(size_t want, size_t piece)
{
	size_t got = 0;

	for (; got < want; got += piece) {
		int id = shmget(IPC_PRIVATE, piece, IPC_CREAT | 0600);
		char *p = id < 0 ? (char *)-1 : shmat(id, NULL, 0);

		if (p == (char *)-1)
			break;
		(void)memset(p, 1, piece);
		(void)shmdt(p);
	}
	return got;
}

/* Children hold them: one process has not enough descriptors. @make: a full queue, its bytes. */
static size_t take_queues(size_t want, size_t (*make)(void))
{
	size_t got = 0;
	int report[2];

	if (pipe(report) < 0)
		return 0;
	for (int child = 0; child < 24; child++) {
		if (fork() > 0)
			continue;
		for (size_t mine = 0, n = 1; n > 0 && mine < want / 24; mine += n) {
			n = make();
			(void)!write(report[1], &n, sizeof(n));
		}
		(void)close(report[1]);
		for (;;)
			(void)pause();
	}
	(void)close(report[1]);
	for (size_t n; got < want && read(report[0], &n, sizeof(n)) == sizeof(n);)
		got += n;
	return got;
}

static size_t fill_queue(int fd)
{
	(void)fcntl(fd, F_SETFL, O_NONBLOCK);
	return fill(fd, 64 * MIB);
}

static size_t make_pipe(void)
{
	int fds[2];

	if (pipe(fds) < 0)
		return 0;
	(void)fcntl(fds[1], F_SETPIPE_SZ, 1024 * 1024);
	return fill_queue(fds[1]);
}

static void blow_up(int fd, int which)
{
	int size = 8 * 1024 * 1024;

	(void)setsockopt(fd, SOL_SOCKET, which, &size, sizeof(size));
}

static size_t make_pair(void)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) < 0)
		return 0;
	blow_up(fds[1], SO_SNDBUF);
	return fill_queue(fds[1]);
}

/* Two sockets on the loopback, the second connected to the first. */
static int loopback(int type, int fds[2])
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);

	fds[0] = socket(AF_INET, type, 0);
	fds[1] = socket(AF_INET, type, 0);
	if (fds[0] < 0 || fds[1] < 0)
		return -1;
	blow_up(fds[0], SO_RCVBUF);
	blow_up(fds[1], SO_SNDBUF);
	if (bind(fds[0], (struct sockaddr *)&at, sizeof(at)) < 0 ||
	    getsockname(fds[0], (struct sockaddr *)&at, &len) < 0 ||
	    (type == SOCK_STREAM && listen(fds[0], 1) < 0))
		return -1;
	return connect(fds[1], (struct sockaddr *)&at, sizeof(at));
}

/* The receiver's buffer is what fills. A datagram beyond it is lost, not refused: ask what it has.
 */
static size_t make_udp(void)
{
	unsigned int info[9] = { 0 };
	socklen_t len = sizeof(info);
	int fds[2];

	if (loopback(SOCK_DGRAM, fds) < 0)
		return 0;
	for (int i = 0; i < 512; i++)
		(void)send(fds[1], block, 32768, MSG_DONTWAIT);
	if (getsockopt(fds[0], SOL_SOCKET, SO_MEMINFO, info, &len) < 0)
		return 0;
	return info[0]; /* SK_MEMINFO_RMEM_ALLOC */
}

static size_t make_tcp(void)
{
	int fds[2];

	if (loopback(SOCK_STREAM, fds) < 0 || accept(fds[0], NULL, NULL) < 0)
		return 0;
	return fill_queue(fds[1]);
}

static size_t take(const char *mode, size_t want)
{
	if (strcmp(mode, "touch") == 0)
		return take_touch(want);
	if (strcmp(mode, "populate") == 0)
		return take_populate(want);
	if (strcmp(mode, "children") == 0)
		return take_children(want);
	if (strcmp(mode, "shm") == 0)
		return fill(open("/dev/shm/fill_memory", O_CREAT | O_RDWR | O_TRUNC, 0600), want);
	if (strcmp(mode, "tmp") == 0)
		return fill(open("/tmp/fill_memory", O_CREAT | O_RDWR | O_TRUNC, 0600), want);
	if (strcmp(mode, "memfd") == 0)
		return fill(memfd_create("fill_memory", 0), want);
	if (strcmp(mode, "sysv") == 0)
		return take_sysv(want, 4 * MIB);
	if (strcmp(mode, "crumbs") == 0)
		return take_sysv(want, 65536);
	if (strcmp(mode, "pipe") == 0)
		return take_queues(want, make_pipe);
	if (strcmp(mode, "socket") == 0)
		return take_queues(want, make_pair);
	if (strcmp(mode, "udp") == 0)
		return take_queues(want, make_udp);
	if (strcmp(mode, "tcp") == 0)
		return take_queues(want, make_tcp);
	_exit(97);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 97;
	size_t want = strtoul(argv[2], NULL, 10) * MIB;
	unsigned int hold = argc > 3 ? (unsigned int)strtoul(argv[3], NULL, 10) : 0;

	(void)memset(block, 'x', sizeof(block));
	size_t got = take(argv[1], want);

	(void)printf("%zu MiB\n", got / MIB);
	(void)fflush(stdout);
	(void)sleep(hold);
	if (strcmp(argv[1], "shm") == 0)
		(void)unlink("/dev/shm/fill_memory");
	if (strcmp(argv[1], "tmp") == 0)
		(void)unlink("/tmp/fill_memory");
	return got >= want ? 0 : 3;
}
