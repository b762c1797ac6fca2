/* SPDX-License-Identifier: Apache-2.0 */
/*
 * child.h - Run the part of a test that cannot be undone (credentials, limits, domains) in a
 * process of its own.
 *
 * cmocka's assertions jump within one process, so a child must not use them: it uses CHILD_CHECK(),
 * which prints the line and ends it. The parent turns that into a failure of the test.
 */
#ifndef CAISSON_TESTS_CHILD_H
#define CAISSON_TESTS_CHILD_H

#include <errno.h>
#include <grp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

#define CHILD_FAILED 99
#define CHILD_SKIPPED 77
#define CHILD_DEADLINE_S 30
#define CHILD_NOBODY 65534u

#define CHILD_CHECK(condition)                                                                     \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			(void)fprintf(stderr, "%s:%d: %s (errno: %s)\n", __FILE__, __LINE__,       \
				      #condition, strerror(errno));                                \
			_exit(CHILD_FAILED);                                                       \
		}                                                                                  \
	} while (0)

/* Leave the child, and the test, as skipped; the reason is printed. */
#define CHILD_SKIP(...)                                                                            \
	do {                                                                                       \
		(void)printf("# skipped: " __VA_ARGS__);                                           \
		(void)printf("\n");                                                                \
		(void)fflush(stdout);                                                              \
		_exit(CHILD_SKIPPED);                                                              \
	} while (0)

/* Start fn(arg) in a child, which ends with it. */
static inline pid_t child_start(void (*fn)(void *), void *arg)
{
	(void)fflush(NULL);
	pid_t pid = fork();

	if (pid == 0) {
		(void)alarm(CHILD_DEADLINE_S);
		fn(arg);
		_exit(0);
	}
	return pid;
}

/* Wait status of one child, or -1. */
static inline int child_wait(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return status;
}

/* Run fn(arg) in a child and make its end the test's: passed, skipped or failed. */
#define child_run(fn, arg)                                                                         \
	do {                                                                                       \
		int status_ = child_wait(child_start(fn, arg));                                    \
		if (WIFEXITED(status_) && WEXITSTATUS(status_) == CHILD_SKIPPED)                   \
			skip();                                                                    \
		assert_int_equal(status_, 0);                                                      \
	} while (0)

/*
 * CHILD_TEST(name) { ... } defines a test that runs in a child; ROOT_TEST(name, what) skips it,
 * with a reason, unless it runs as root.
 */
#define CHILD_TEST_AFTER(name, check)                                                              \
	static void child_##name(void *arg);                                                       \
	TEST(name)                                                                                 \
	{                                                                                          \
		check;                                                                             \
		child_run(child_##name, NULL);                                                     \
	}                                                                                          \
	static void child_##name(__attribute__((unused)) void *arg)
#define CHILD_TEST(name) CHILD_TEST_AFTER(name, (void)0)
#define ROOT_TEST(name, what) CHILD_TEST_AFTER(name, need_root(what))

/* Skip the test, with a reason, unless it runs as root. */
#define need_root(what)                                                                            \
	do {                                                                                       \
		if (geteuid() != 0) {                                                              \
			(void)printf("# skipped: %s needs root\n", what);                          \
			skip();                                                                    \
		}                                                                                  \
	} while (0)

/* In a child: be an ordinary user from here on, with the /proc files of one. */
static inline void child_become_nobody(void)
{
	if (geteuid() == 0) {
		CHILD_CHECK(setgroups(0, NULL) == 0);
		CHILD_CHECK(setresgid(CHILD_NOBODY, CHILD_NOBODY, CHILD_NOBODY) == 0);
		CHILD_CHECK(setresuid(CHILD_NOBODY, CHILD_NOBODY, CHILD_NOBODY) == 0);
	}
	CHILD_CHECK(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0);
}

#endif
