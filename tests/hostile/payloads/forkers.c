/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forkers.c - Chains of processes that fork and end faster than a killer can list them.
 *
 *   forkers CHAINS NONCE
 */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "say.h"

static _Noreturn void chain(void)
{
	for (;;) {
		pid_t pid = fork();

		if (pid > 0)
			_exit(0); /* the child goes on under another pid */
		if (pid < 0)
			(void)usleep(100);
	}
}

int main(int argc, char **argv)
{
	int n = argc == 3 ? atoi(argv[1]) : 0;

	if (n <= 0)
		return 2;
	(void)signal(SIGCHLD, SIG_IGN);
	for (int i = 0; i < n; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			(void)setsid();
			chain();
		}
		if (pid < 0)
			break;
	}
	(void)printf("ready\n");
	(void)fflush(stdout);
	for (;;)
		(void)pause();
}
