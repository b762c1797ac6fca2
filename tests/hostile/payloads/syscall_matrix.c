/* SPDX-License-Identifier: Apache-2.0 */
/*
 * syscall_matrix.c - Make every system call, by every entry of an x86-64 kernel, and say what came.
 *
 * usage: syscall_matrix          every number by the 64-bit entry, by int 0x80 and with the x32 bit
 *        syscall_matrix FILE     the calls in FILE, one "ABI NR [ARG]..." a line
 *
 * Prints "ABI NR RESULT" for each: an errno, 0 for success, blocked, killed:SIGNAL, exited:STATUS.
 * With FILE the arguments are printed as well.
 *
 * Each call is made in a child, with arguments that do no harm where the call is allowed: mostly
 * -1, which is no descriptor, no address, no valid flags and no signal, so that a call which
 * reaches the kernel fails there with EBADF, EFAULT or EINVAL. A child that does not come back in
 * time is killed. The few exceptions are in a table: calls that answer ENOSYS to an unknown
 * subcommand, which would look refused; calls whose -1 would be refused by a check; and calls that
 * would leave something behind.
 *
 * Children are started one after the other, so two processes and one grandchild exist at most.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NR_END 640 /* above the newest number of every table, by far more than 64 */
#define X32_BIT 0x40000000
#define WAIT_MS 250
#define SPARE ((uint64_t)-1)

enum abi { ABI_64, ABI_I386, ABI_X32, ABI_MAX_ };

static const char *const abi_names[ABI_MAX_] = { "x86_64", "i386", "x32" };

struct call {
	enum abi abi;
	uint64_t nr;
	uint64_t arg[6];
};

/* 64-bit calls that need other arguments than -1. */
static const struct {
	uint64_t nr;
	uint64_t arg[6];
} special[] = {
	{ SYS_mmap, { 0, 4096, 0, MAP_PRIVATE | MAP_ANONYMOUS, SPARE, 0 } },
	{ SYS_clone, { SIGCHLD, 0, 0, 0, 0, 0 } },
	{ SYS_socket, { 1, 1, 0, 0, 0, 0 } },
	{ SYS_socketpair, { 1, 1, 0, SPARE, 0, 0 } },
	{ SYS_mknod, { SPARE, 0, 0, 0, 0, 0 } },
	{ SYS_mknodat, { SPARE, SPARE, 0, 0, 0, 0 } },
	{ SYS_memfd_create, { SPARE, 0, 0, 0, 0, 0 } },
	{ SYS_shmget, { 0, 0, 0, 0, 0, 0 } },
	{ SYS_semget, { SPARE, 0, 0, 0, 0, 0 } },
	{ SYS_msgget, { SPARE, 0, 0, 0, 0, 0 } },
	{ SYS_prctl, { PR_GET_DUMPABLE, 0, 0, 0, 0, 0 } },
	{ SYS_seccomp, { SPARE, 0, 0, 0, 0, 0 } },
	{ SYS_futex, { 0, 1 /* FUTEX_WAKE */, 0, 0, 0, 0 } },
};

/* Shared with the children: the result, and whether there is one. */
struct answer {
	long result;
	int done;
};

static volatile struct answer *answer;

/* Inlined, so that a vfork child never returns from a function whose frame its parent needs. */
static inline __attribute__((always_inline)) long call_64(uint64_t nr, const uint64_t a[6])
{
	register uint64_t r10 __asm__("r10") = a[3];
	register uint64_t r8 __asm__("r8") = a[4];
	register uint64_t r9 __asm__("r9") = a[5];
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

/* Five arguments: the sixth would be ebp, which the compiler keeps for itself. */
static inline __attribute__((always_inline)) long call_i386(uint64_t nr, const uint64_t a[6])
{
	uint32_t ret;

	__asm__ volatile("int $0x80"
			 : "=a"(ret)
			 : "a"((uint32_t)nr), "b"((uint32_t)a[0]), "c"((uint32_t)a[1]),
			   "d"((uint32_t)a[2]), "S"((uint32_t)a[3]), "D"((uint32_t)a[4])
			 : "r8", "r9", "r10", "r11", "memory");
	return (int32_t)ret;
}

static void child(const struct call *c)
{
	static const uint64_t none[6];
	long me = call_64(SYS_getpid, none), ret;

	if (c->abi == ABI_I386)
		ret = call_i386(c->nr, c->arg);
	else
		ret = call_64(c->abi == ABI_X32 ? c->nr | X32_BIT : c->nr, c->arg);
	if (call_64(SYS_getpid, none) == me) {
		answer->result = ret;
		answer->done = 1;
	}
	for (;;) /* also the end of a child that the call itself made */
		(void)call_64(SYS_exit_group, none);
}

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Wait for the child at most WAIT_MS, then end it. Says whether it had to be ended. */
static bool collect(pid_t pid, int *status)
{
	int64_t deadline = now_ms() + WAIT_MS;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	while (waitpid(pid, status, WNOHANG) != pid) {
		int64_t left = deadline - now_ms();
		struct timespec ts = { 0, left * 1000000 };

		if (left <= 0) {
			kill(pid, SIGKILL);
			while (waitpid(pid, status, 0) < 0 && errno == EINTR)
				;
			return true;
		}
		(void)sigtimedwait(&set, NULL, &ts);
	}
	return false;
}

static void probe(const struct call *c)
{
	int status = 0;
	bool blocked;
	pid_t pid;

	answer->done = 0;
	pid = fork();
	if (pid < 0) {
		perror("syscall_matrix: fork");
		exit(1);
	}
	if (pid == 0)
		child(c);
	blocked = collect(pid, &status);
	if (answer->done)
		printf("%ld\n",
		       answer->result < 0 && answer->result >= -4095 ? -answer->result : 0);
	else if (blocked)
		printf("blocked\n");
	else if (WIFSIGNALED(status))
		printf("killed:%d\n", WTERMSIG(status));
	else
		printf("exited:%d\n", WEXITSTATUS(status));
}

static void sweep(void)
{
	for (int abi = 0; abi < ABI_MAX_; abi++) {
		for (uint64_t nr = 0; nr < NR_END; nr++) {
			struct call c = { (enum abi)abi, nr, { 0 } };

			memset(c.arg, 0xff, sizeof(c.arg));
			for (size_t i = 0; i < sizeof(special) / sizeof(special[0]); i++)
				if (abi == ABI_64 && special[i].nr == nr)
					memcpy(c.arg, special[i].arg, sizeof(c.arg));
			printf("%s %llu ", abi_names[abi], (unsigned long long)nr);
			probe(&c);
		}
	}
}

/* One "ABI NR [ARG]..." line; arguments left out are 0. */
static bool read_call(char *line, struct call *c)
{
	char *at = strchr(line, ' '), *end;

	if (!at)
		return false;
	*at++ = '\0';
	*c = (struct call){ .abi = ABI_MAX_ };
	for (int i = 0; i < ABI_MAX_; i++)
		if (strcmp(line, abi_names[i]) == 0)
			c->abi = (enum abi)i;
	c->nr = strtoull(at, &end, 0);
	for (int i = 0; i < 6 && *end == ' '; i++)
		c->arg[i] = strtoull(end, &end, 0);
	return c->abi != ABI_MAX_ && (*end == '\n' || *end == '\0');
}

static int from_file(const char *path)
{
	FILE *in = fopen(path, "re");
	char line[256];
	struct call c;

	if (!in) {
		perror(path);
		return 1;
	}
	while (fgets(line, sizeof(line), in)) {
		if (!read_call(line, &c)) {
			fprintf(stderr, "syscall_matrix: cannot read '%s'\n", line);
			return 1;
		}
		printf("%s %llu", abi_names[c.abi], (unsigned long long)c.nr);
		for (int i = 0; i < 6; i++)
			printf(" 0x%llx", (unsigned long long)c.arg[i]);
		printf(" ");
		probe(&c);
	}
	fclose(in);
	return 0;
}

int main(int argc, char **argv)
{
	sigset_t set;

	answer = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (answer == MAP_FAILED) {
		perror("syscall_matrix: mmap");
		return 1;
	}
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (argc > 1)
		return from_file(argv[1]);
	sweep();
	return 0;
}
