/* SPDX-License-Identifier: Apache-2.0 */
/*
 * odd_requests.c - Rarer ways to be a nuisance: stacks, locked and huge memory, randomness, large
 * arguments.
 *
 * usage: odd_requests stack | mlock | huge | random | args
 *
 * stack   recursion without end
 * mlock   lock 64 MiB, and everything to come; prints "CALL ERRNO" lines
 * huge    pages from the machine's pool, by mmap, memfd and shmget; prints "CALL ERRNO" lines
 * random  read a lot from getrandom() and /dev/random; prints the bytes got
 * args    prints count and total size of arguments and environment, and the longest
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/shm.h>
#include <unistd.h>

#define MIB (1024ul * 1024)

extern char **environ;

static void say(const char *what, int failed)
{
	(void)printf("%s %s\n", what, failed ? strerrorname_np(errno) : "OK");
}

static int deeper(volatile char *above)
{
	volatile char here[4096];

	here[0] = above[0];
	return above[0] == 'x' ? 0 : deeper(here) + here[0]; /* it never is */
}

static void lock(void)
{
	void *p = mmap(NULL, 64 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	say("mlock", mlock(p, 64 * MIB));
	say("locked-map", mmap(NULL, 64 * MIB, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED, -1, 0) == MAP_FAILED);
	say("mlockall", mlockall(MCL_CURRENT | MCL_FUTURE));
}

static void huge(void)
{
	say("mmap", mmap(NULL, 2 * MIB, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0) == MAP_FAILED);
	say("memfd", memfd_create("h", MFD_HUGETLB) < 0);
	int id = shmget(IPC_PRIVATE, 2 * MIB, IPC_CREAT | SHM_HUGETLB | 0600);

	say("shmget", id < 0);
	if (id >= 0)
		(void)shmctl(id, IPC_RMID, NULL);
}

static void drain(void)
{
	static char buf[MIB];
	size_t got = 0;
	int fd = open("/dev/random", O_RDONLY);

	for (int i = 0; i < 8; i++) {
		ssize_t n = read(fd, buf, sizeof(buf));

		got += n > 0 ? (size_t)n : 0;
		n = getrandom(buf, sizeof(buf), GRND_RANDOM);
		got += n > 0 ? (size_t)n : 0;
	}
	(void)printf("%zu\n", got);
}

static void count(char **v, size_t *n, size_t *bytes, size_t *longest)
{
	for (; *v; v++) {
		size_t len = strlen(*v);

		++*n;
		*bytes += len + 1;
		if (len > *longest)
			*longest = len;
	}
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	if (strcmp(mode, "stack") == 0) {
		char start = (char)argc;

		return deeper(&start);
	}
	if (strcmp(mode, "mlock") == 0) {
		lock();
	} else if (strcmp(mode, "huge") == 0) {
		huge();
	} else if (strcmp(mode, "random") == 0) {
		drain();
	} else if (strcmp(mode, "args") == 0) {
		size_t n = 0, bytes = 0, longest = 0;

		count(argv, &n, &bytes, &longest);
		count(environ, &n, &bytes, &longest);
		(void)printf("%zu %zu %zu\n", n, bytes, longest);
	} else {
		return 97;
	}
	return 0;
}
