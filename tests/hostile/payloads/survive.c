/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survive.c - Daemons that do what they can to outlive their sandbox.
 *
 *   survive N NONCE exit|hold   make N of them, then end or sleep for ever
 *
 * Each one has forked twice, has its own session, ignores what can be ignored, has cleared its
 * parent-death signal, made itself reaper and undumpable, and calls itself like one of our own
 * processes or like a kernel thread. The nonce stays in its arguments: the judge looks for it.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "say.h"

static void daemonise(int i, int ready)
{
	static const char *const names[] = { "caisson-warden", "caisson-init", "caisson",
					     "kthreadd", "(sd-pam)" };

	(void)setsid();
	if (fork() != 0)
		_exit(0);
	for (int sig = 1; sig <= 64; sig++)
		(void)signal(sig, SIG_IGN);
	(void)prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	(void)prctl(PR_SET_NAME, names[(size_t)i % (sizeof(names) / sizeof(names[0]))], 0, 0, 0);
	(void)setpgid(0, 0);
	(void)!write(ready, "x", 1);
	for (int fd = 0; fd < 64; fd++)
		if (i % 2 || fd > 2) /* half of them keep the streams open */
			(void)close(fd);
	for (;;)
		(void)sleep(1000);
}

int main(int argc, char **argv)
{
	int pair[2], n = argc == 4 ? atoi(argv[1]) : 0;
	char byte;

	if (n <= 0 || pipe(pair) < 0)
		return 2;
	for (int i = 0; i < n; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return 3;
		if (pid == 0)
			daemonise(i, pair[1]);
		(void)waitpid(pid, NULL, 0);
	}
	for (int i = 0; i < n; i++)
		if (read(pair[0], &byte, 1) != 1)
			return 4;
	(void)printf("ready %d\n", n);
	(void)fflush(stdout);
	if (strcmp(argv[3], "exit") == 0) {
		(void)getchar(); /* the judge has seen them */
		return 0;
	}
	for (;;)
		(void)pause();
}
