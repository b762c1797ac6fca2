/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kill_all.c - Signals to everybody, to pid 1, and to pids that are only guessed.
 *
 *   kill_all all          SIGKILL to -1, every signal to pid 1
 *   kill_all scan LO HI   SIGKILL to every pid and group of the range but our own, in six ways
 *
 * With "wait" as first argument a line on stdin is awaited, so that the judge can prepare.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "say.h"

static void kill_all(void)
{
	say("kill-minus-one", kill(-1, SIGKILL));
	for (int sig = 1; sig <= 64; sig++)
		if (kill(1, sig) == 0)
			(void)printf("pid1-accepted %d\n", sig);
}

static void hit(const char *how, int pid)
{
	(void)printf("hit %s %d\n", how, pid);
}

static void scan(int lo, int hi)
{
	int self = getpid(), group = getpgrp();

	for (int pid = lo; pid <= hi; pid++) {
		siginfo_t info = { .si_signo = SIGKILL, .si_code = SI_QUEUE };

		if (pid == self)
			continue;
		if (pid != group && kill(-pid, SIGKILL) == 0)
			hit("group", pid);
		if (kill(pid, SIGKILL) == 0)
			hit("kill", pid);
		if (syscall(SYS_tkill, pid, SIGKILL) == 0)
			hit("tkill", pid);
		if (syscall(SYS_tgkill, pid, pid, SIGKILL) == 0)
			hit("tgkill", pid);
		if (syscall(SYS_rt_sigqueueinfo, pid, SIGKILL, &info) == 0)
			hit("sigqueue", pid);
		int fd = (int)syscall(SYS_pidfd_open, pid, 0);

		if (fd >= 0 && syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0) == 0)
			hit("pidfd", pid);
		if (fd >= 0)
			(void)close(fd);
	}
}

int main(int argc, char **argv)
{
	char line[64];

	if (argc > 1 && strcmp(argv[1], "wait") == 0) {
		(void)printf("waiting\n");
		(void)fflush(stdout);
		if (!fgets(line, sizeof(line), stdin))
			return 2;
		argc--, argv++;
	}
	if (argc == 2 && strcmp(argv[1], "all") == 0)
		kill_all();
	else if (argc == 4 && strcmp(argv[1], "scan") == 0)
		scan(atoi(argv[2]), atoi(argv[3]));
	else
		return 2;
	(void)printf("done\n");
	return 0;
}
