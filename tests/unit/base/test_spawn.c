/* SPDX-License-Identifier: Apache-2.0 */
/* test_spawn.c - A child has the descriptors, environment and signals of the table, no others. */
#include "base/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit.h"
#include "base/err.h"
#include "base/fd.h"

/* The output of a program. */
static const char *run_words(struct spawn *s, const char **words)
{
	static char text[4096];
	struct err e = { 0 };
	int out[2], status, before = open_fds();
	size_t len = 0;
	pid_t pid;

	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	s->argv = (char **)(uintptr_t)words;
	s->fds[s->n_fds++] = (struct spawn_fd){ out[1], STDOUT_FILENO };
	assert_int_equal(spawn_program(s, &pid, &e), 0);
	s->n_fds--;
	close(out[1]);
	for (ssize_t n; (n = read(out[0], text + len, sizeof(text) - 1 - len)) > 0;)
		len += (size_t)n;
	text[len] = '\0';
	close(out[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(open_fds(), before);
	return text;
}

static const char *run(struct spawn *s, const char *script)
{
	return run_words(s, (const char *[]){ "sh", "-c", script, NULL });
}

static int text_fd(const char *text)
{
	int fd = fd_memfd("test", text, strlen(text));

	assert_true(fd >= 0);
	return fd;
}

static void at(int fd, int number)
{
	assert_int_equal(dup3(fd, number, O_CLOEXEC), number);
	close(fd);
}

#define LIST "for i in 3 4 5 6 7 8 9 30; do [ -e /proc/self/fd/$i ] && printf '%s ' $i; done; true"

TEST(places_and_closes)
{
	struct spawn s = { .fds = { { 40, 3 }, { -1, 4 }, { 41, 5 } }, .n_fds = 3 };

	at(text_fd("one"), 40);
	at(text_fd("two"), 41);
	assert_int_equal(dup2(40, 30), 30); /* inheritable, and unused */
	assert_int_equal(dup2(40, 4), 4);
	assert_string_equal(run(&s, "cat <&3; cat <&5; " LIST), "onetwo3 5 ");
	s.keep_others = true;
	assert_string_equal(run(&s, LIST), "3 4 5 30 ");
	for (size_t i = 0; i < 4; i++)
		close((const int[]){ 4, 30, 40, 41 }[i]);
}

/* The sources have the numbers of the targets, crosswise and of themselves. */
TEST(exchanges)
{
	struct spawn s = { .fds = { { 41, 40 }, { 40, 41 }, { 42, 42 } }, .n_fds = 3 };

	at(text_fd("forty"), 40);
	at(text_fd("forty-one"), 41);
	at(text_fd("forty-two"), 42);
	assert_string_equal(run(&s, "cat /proc/self/fd/40 /proc/self/fd/41 /proc/self/fd/42"),
			    "forty-oneforty"
			    "forty-two");
	for (int i = 40; i <= 42; i++) {
		assert_int_equal(fcntl(i, F_GETFD), FD_CLOEXEC);
		close(i);
	}
}

TEST(environment)
{
	static const char *const names[] = { "A=", "LONG=", NULL };
	char a[] = "A=1", b[] = "AB=2", l[] = "LONG=3";
	char *env[] = { a, b, l, NULL }, *picked[3], *one[2];
	struct spawn s = { 0 };

	assert_string_equal(run(&s, "echo \"$A$AB$LONG$HOME\""), "\n");
	spawn_pick_env(env, names, picked, ARRAY_SIZE(picked));
	s.envp = picked;
	assert_string_equal(run(&s, "echo \"$A$AB$LONG$HOME\""), "13\n");
	spawn_pick_env(env, names, one, ARRAY_SIZE(one));
	assert_ptr_equal(one[0], a);
	assert_null(one[1]);
}

/* Not by a shell, which unblocks signals. The first sixteen: some above 31 are the C library's. */
static const char *signals(struct spawn *s)
{
	return run_words(s, (const char *[]){ "sed", "-En", "s/^Sig(Blk|Ign):.*(....)$/\\1 \\2/p",
					      "/proc/self/status", NULL });
}

TEST(signals)
{
	sigset_t usr1, all, old;
	struct spawn s = { 0 };

	(void)sigemptyset(&usr1);
	(void)sigaddset(&usr1, SIGUSR1);
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &usr1, &old);
	for (int n = 1; n < SIGUSR2; n++) /* nohup, or a shell without job control */
		(void)signal(n, SIG_DFL);
	(void)signal(SIGUSR2, SIG_IGN);
	assert_string_equal(signals(&s), "Blk 0000\nIgn 0800\n");
	s.mask = &usr1;
	s.unignored = &all;
	assert_string_equal(signals(&s), "Blk 0200\nIgn 0000\n");
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	(void)signal(SIGUSR2, SIG_DFL);
}

TEST(input_and_group)
{
	char own[32];
	struct spawn s = { .no_input = true };

	(void)snprintf(own, sizeof(own), "/dev/null\n%d\n", (int)getpgrp());
	assert_string_equal(run(&s, "readlink /proc/self/fd/0; cut -d' ' -f5 /proc/$$/stat"), own);
	s.own_group = true;
	assert_string_equal(run(&s, "[ $(cut -d' ' -f5 /proc/$$/stat) = $$ ] && echo own"),
			    "own\n");
}

TEST(failures)
{
	struct rlimit before, few;
	char none[] = "/nonexistent/program", *argv[] = { none, NULL };
	struct spawn s = { .argv = argv, .path = none };
	struct err e = { 0 };
	pid_t pid = 77;
	int n = open_fds();

	assert_int_equal(spawn_program(&s, &pid, &e), -ENOENT);
	assert_string_equal(e.msg, "start /nonexistent/program: No such file or directory");
	s.path = NULL;
	assert_int_equal(spawn_program(&s, &pid, NULL), -ENOENT);
	/* The number is above the limit: adding the action fails, and must not be ignored. */
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = 15;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	s.path = "/bin/true";
	s.fds[0] = (struct spawn_fd){ 2, 19 };
	s.n_fds = 1;
	assert_int_equal(spawn_program(&s, &pid, &e), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(pid, 77);
	assert_int_equal(open_fds(), n);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child was left */
}
