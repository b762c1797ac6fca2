/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spawn.c - Start programs and measure them, with as little of its own as possible.
 *
 *   bench-spawn time ROUNDS SEED FILE        every command once per round, order shuffled per round
 *   bench-spawn rate WORKERS SECONDS FILE    the one command of FILE, over and over, by WORKERS
 *
 * FILE has one command per line: a name, then the argument list, separated by tabs. The argument
 * "{id}" is replaced by a string that is different each time (container names must be). A first
 * argument "@PATH" names a mount namespace to start in.
 *
 * A sample is the wall time from before vfork() until the child is reaped, its standard output read
 * to the end in between. A run counts only when it exits 0 and prints exactly "1\n"; what failed is
 * counted and reported as such.
 *
 * Output of `time`: "NAME NANOSECONDS" or "NAME fail" per sample. Of `rate`: "OK FAILED
 * NANOSECONDS".
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define COMMANDS_MAX 32
#define ARGS_MAX 96
#define LINE_MAX_ 8192
#define ID_MAX 48
#define RUN_TIMEOUT_MS 60000

extern char **environ;

struct command {
	char line[LINE_MAX_]; /* the arguments, each NUL-terminated */
	char *name;
	char *argv[ARGS_MAX];
	int id_arg; /* index of the argument that is "{id}", 0 for none */
	int mnt_fd; /* mount namespace to start in, -1 for ours */
};

static struct command commands[COMMANDS_MAX];
static size_t n_commands;
static unsigned long serial;
static int null_fd;

static uint64_t now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void die(const char *what)
{
	fprintf(stderr, "bench-spawn: %s: %s\n", what, strerror(errno));
	exit(2);
}

static void parse_command(struct command *c)
{
	size_t argc = 0;
	char *save = NULL;

	c->line[strcspn(c->line, "\n")] = '\0';
	c->name = strtok_r(c->line, "\t", &save);
	c->mnt_fd = -1;
	while (argc < ARGS_MAX - 1 && (c->argv[argc] = strtok_r(NULL, "\t", &save))) {
		if (argc == 0 && c->mnt_fd < 0 && c->argv[0][0] == '@') {
			c->mnt_fd = open(c->argv[0] + 1, O_RDONLY | O_CLOEXEC);
			if (c->mnt_fd < 0)
				die(c->argv[0]);
			continue;
		}
		if (strcmp(c->argv[argc], "{id}") == 0)
			c->id_arg = (int)argc;
		argc++;
	}
	if (!c->name || argc == 0) {
		errno = EINVAL;
		die("a command needs a name and a program");
	}
}

static void read_commands(const char *path)
{
	FILE *f = fopen(path, "re");

	if (!f)
		die(path);
	while (n_commands < COMMANDS_MAX && fgets(commands[n_commands].line, LINE_MAX_, f))
		parse_command(&commands[n_commands++]);
	(void)fclose(f);
	if (n_commands == 0) {
		errno = EINVAL;
		die("no commands");
	}
}

/* Read @fd to its end; true when all of it was "1\n". Gives up on a child that hangs. */
static bool read_answer(int fd)
{
	char buf[64];
	size_t len = 0;

	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		int r = poll(&p, 1, RUN_TIMEOUT_MS);

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return false;
		ssize_t n = read(fd, buf + len, sizeof(buf) - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n == 0 && len == 2 && memcmp(buf, "1\n", 2) == 0;
		len += (size_t)n;
		if (len == sizeof(buf))
			return false;
	}
}

/* The child's half: only system calls, on memory that is the parent's. */
static _Noreturn void start(const struct command *c, int out_fd)
{
	if ((c->mnt_fd < 0 || setns(c->mnt_fd, CLONE_NEWNS) == 0) && dup2(null_fd, 0) == 0 &&
	    dup2(out_fd, 1) == 1)
		(void)execve(c->argv[0], c->argv, environ);
	_exit(127);
}

/* Run @c once. Return: its wall time, 0 when it failed. */
static uint64_t run_once(struct command *c)
{
	char id[ID_MAX];
	int pipe_fd[2], status;

	if (c->id_arg) {
		(void)snprintf(id, sizeof(id), "bench-%d-%lu", (int)getpid(), ++serial);
		c->argv[c->id_arg] = id;
	}
	if (pipe2(pipe_fd, O_CLOEXEC) < 0)
		die("pipe");

	uint64_t begin = now_ns();
	/* vfork, so that the size of this process is not in the sample. */
	pid_t pid = vfork();

	if (pid < 0)
		die("vfork");
	if (pid == 0)
		start(c, pipe_fd[1]);
	(void)close(pipe_fd[1]);
	bool good = read_answer(pipe_fd[0]);

	if (!good)
		(void)kill(pid, SIGTERM);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	uint64_t end = now_ns();

	(void)close(pipe_fd[0]);
	return good && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? end - begin : 0;
}

static void shuffle(size_t *order, size_t n, unsigned int *seed)
{
	for (size_t i = n; i > 1; i--) {
		size_t j = (size_t)rand_r(seed) % i, t = order[i - 1];

		order[i - 1] = order[j];
		order[j] = t;
	}
}

static int do_time(unsigned long rounds, unsigned int seed)
{
	size_t order[COMMANDS_MAX];

	for (size_t i = 0; i < n_commands; i++)
		order[i] = i;
	for (unsigned long round = 0; round < rounds; round++) {
		shuffle(order, n_commands, &seed);
		for (size_t i = 0; i < n_commands; i++) {
			struct command *c = &commands[order[i]];
			uint64_t ns = run_once(c);

			if (ns)
				printf("%s %llu\n", c->name, (unsigned long long)ns);
			else
				printf("%s fail\n", c->name);
		}
	}
	return 0;
}

struct tally {
	unsigned long ok, failed;
};

static int do_rate(unsigned long workers, unsigned long seconds)
{
	int pipe_fd[2];
	struct tally sum = { 0 }, t;
	uint64_t start = now_ns(), end = start + (uint64_t)seconds * 1000000000u;

	if (pipe2(pipe_fd, O_CLOEXEC) < 0)
		die("pipe");
	for (unsigned long i = 0; i < workers; i++) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork");
		if (pid > 0)
			continue;
		t = (struct tally){ 0 };
		while (now_ns() < end) {
			if (run_once(&commands[0]))
				t.ok++;
			else
				t.failed++;
		}
		_exit(write(pipe_fd[1], &t, sizeof(t)) == sizeof(t) ? 0 : 1);
	}
	(void)close(pipe_fd[1]);
	while (read(pipe_fd[0], &t, sizeof(t)) == sizeof(t)) {
		sum.ok += t.ok;
		sum.failed += t.failed;
	}
	uint64_t took = now_ns() - start;

	while (wait(NULL) > 0 || errno == EINTR)
		;
	printf("%lu %lu %llu\n", sum.ok, sum.failed, (unsigned long long)took);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc != 5) {
		fprintf(stderr,
			"usage: bench-spawn time ROUNDS SEED FILE | rate WORKERS SECONDS FILE\n");
		return 2;
	}

	unsigned long a = strtoul(argv[2], NULL, 10), b = strtoul(argv[3], NULL, 10);

	null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (null_fd < 0)
		die("/dev/null");
	read_commands(argv[4]);
	if (strcmp(argv[1], "time") == 0)
		return do_time(a, (unsigned int)b);
	if (strcmp(argv[1], "rate") == 0)
		return do_rate(a, b);
	fprintf(stderr, "bench-spawn: unknown mode '%s'\n", argv[1]);
	return 2;
}
