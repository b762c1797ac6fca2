/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write_output.c - Ways to write, and to disturb the reader.
 *
 * usage: write_output burst N | nonblock | splice | vmsplice | tiny | lines N
 *
 * burst N   N bytes in one write, then an immediate end
 * nonblock  set O_NONBLOCK on all three streams, write 1 MiB as fast as possible, sleep a second
 * splice    move 1 MiB through splice() and tee()
 * vmsplice  give its own pages to the pipe and change them; exit with the errno if refused
 * tiny      make the pipes one page small, then write 256 KiB
 * lines N   N times "x\n", each by a process of its own
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (1024 * 1024)

static char block[65536];

static void write_all(size_t n)
{
	while (n > 0) {
		ssize_t w = write(1, block, n < sizeof(block) ? n : sizeof(block));

		if (w > 0) {
			n -= (size_t)w;
		} else if (errno == EAGAIN) {
			struct pollfd p = { .fd = 1, .events = POLLOUT };

			(void)poll(&p, 1, 1000);
		} else {
			_exit(98);
		}
	}
}

static void by_splice(void)
{
	int file = memfd_create("x", 0), in[2], copy[2];
	size_t done = 0;

	if (pipe(in) < 0 || pipe(copy) < 0)
		_exit(98);
	for (int i = 0; i < 16; i++)
		(void)!write(file, block, sizeof(block));
	(void)lseek(file, 0, SEEK_SET);
	while (done < MIB) {
		ssize_t n = splice(file, NULL, in[1], NULL, 16384, 0);

		if (n <= 0 || tee(in[0], copy[1], (size_t)n, 0) != n)
			_exit(98);
		for (ssize_t left = n; left > 0;) {
			ssize_t m = splice(in[0], NULL, 1, NULL, (size_t)left, 0);

			if (m <= 0)
				_exit(98);
			left -= m;
		}
		while (n > 0)
			n -= read(copy[0], block, (size_t)n);
		done += 16384;
	}
}

static int by_vmsplice(void)
{
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec iov = { page, 4096 };

	(void)memset(page, 'A', 4096);
	if (vmsplice(1, &iov, 1, 0) < 0)
		return errno;
	(void)memset(page, 'B', 4096);
	return 0;
}

static void by_many(long n)
{
	for (long i = 0; i < n; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			(void)!write(1, "x\n", 2);
			_exit(0);
		}
		(void)waitpid(pid, NULL, 0);
	}
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	size_t n = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;

	(void)memset(block, 'y', sizeof(block));
	if (strcmp(mode, "burst") == 0) {
		write_all(n);
		_exit(0);
	}
	if (strcmp(mode, "nonblock") == 0) {
		for (int fd = 0; fd < 3; fd++)
			(void)fcntl(fd, F_SETFL, O_NONBLOCK);
		write_all(MIB);
		(void)sleep(1);
	} else if (strcmp(mode, "splice") == 0) {
		by_splice();
	} else if (strcmp(mode, "vmsplice") == 0) {
		return by_vmsplice();
	} else if (strcmp(mode, "tiny") == 0) {
		for (int fd = 0; fd < 3; fd++)
			(void)fcntl(fd, F_SETPIPE_SZ, 4096);
		write_all(256 * 1024);
	} else if (strcmp(mode, "lines") == 0) {
		by_many((long)n);
	} else {
		return 97;
	}
	return 0;
}
