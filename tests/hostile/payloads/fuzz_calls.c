// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_calls.c - Make random system calls with random arguments, in children, for some seconds.
 *
 * usage: fuzz_calls SECONDS SEED
 *
 * Children make the calls, so that a call that ends or blocks one costs a second at most. Calls
 * that send signals are left out: they would end the parent. Arguments are small numbers, numbers
 * at the edge, random ones, descriptors of several kinds, and addresses of a page. At the end the
 * parent prints how many calls were made, how many succeeded, and how many numbers did.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NUMBERS 480
#define CALLS_PER_CHILD 300
#define PAGE 4096

struct counts {
	uint64_t calls, succeeded;
	uint8_t seen[NUMBERS];
};

static const long left_out[] = {
	SYS_exit,
	SYS_exit_group,
	SYS_kill,
	SYS_tkill,
	SYS_tgkill,
	SYS_pause,
	SYS_rt_sigsuspend,
	SYS_rt_sigqueueinfo,
	SYS_rt_tgsigqueueinfo,
	SYS_pidfd_send_signal,
};

static uint64_t state;
static unsigned char *page;

/* xorshift64* */
static uint64_t random64(void)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return state * 2685821657736338717u;
}

static long argument(void)
{
	static const long edges[] = { -1, 0, 1, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, -4096 };

	switch (random64() % 6) {
	case 0:
		return (long)(random64() % 16);
	case 1:
		return edges[random64() % (sizeof(edges) / sizeof(edges[0]))];
	case 2:
		return (long)random64();
	case 3:
		return (long)(random64() % (1u << (random64() % 31)));
	default:
		return (long)(page + random64() % PAGE);
	}
}

static int is_left_out(long number)
{
	for (size_t i = 0; i < sizeof(left_out) / sizeof(left_out[0]); i++)
		if (left_out[i] == number)
			return 1;
	return 0;
}

static void open_some(void)
{
	int pair[2];

	if (pipe(pair) < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
		return;
	(void)epoll_create1(0);
	(void)open("/dev/null", O_RDWR);
	(void)open("/proc/self/status", O_RDONLY);
	(void)open("/tmp", O_RDONLY | O_DIRECTORY);
	(void)syscall(SYS_memfd_create, "fuzz", 0);
	(void)socket(AF_INET, SOCK_STREAM, 0);
}

static void child(struct counts *c)
{
	alarm(1);
	open_some();
	for (int i = 0; i < CALLS_PER_CHILD; i++) {
		long number = (long)(random64() % NUMBERS);

		if (is_left_out(number))
			continue;
		for (int n = 0; n < 64; n++)
			page[random64() % PAGE] = (unsigned char)random64();
		c->calls++;
		if (syscall(number, argument(), argument(), argument(), argument(), argument(),
			    argument()) >= 0) {
			c->succeeded++;
			c->seen[number] = 1;
		}
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? atol(argv[1]) : 1);
	struct counts *c =
		mmap(NULL, sizeof(*c), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int numbers = 0;

	state = argc > 2 ? strtoull(argv[2], NULL, 10) | 1 : 1;
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (c == MAP_FAILED || page == MAP_FAILED)
		return 1;
	while (time(NULL) < end) {
		pid_t pid;

		state = random64() | 1; /* another stream for each child */
		pid = fork();
		if (pid == 0)
			child(c);
		if (pid > 0)
			(void)waitpid(pid, NULL, 0);
		(void)kill(-1, SIGKILL); /* leftovers of the child, in a cell */
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
	for (int i = 0; i < NUMBERS; i++)
		numbers += c->seen[i];
	printf("calls %llu succeeded %llu numbers %d\n", (unsigned long long)c->calls,
	       (unsigned long long)c->succeeded, numbers);
	return 0;
}
