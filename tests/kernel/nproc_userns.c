/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nproc_userns.c - RLIMIT_NPROC counts the processes of a user namespace, not of the whole
 * machine.
 *
 * Without root the cell's agent is the caller's own user, who may have hundreds of processes
 * outside. RLIMIT_NPROC is the second layer under the pids cgroup, and the only one with
 * '--without cgroup' (src/wire/init.h, INIT_LIMITS). It is of use only because since Linux 5.14 the
 * kernel counts per user namespace: processes outside must not eat the cell's allowance, and those
 * inside must be held to it.
 */
#include "probe.h"

#include <grp.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#define OUTSIDE 30
#define LIMIT 10

static _Noreturn void idle(void)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	for (;;)
		(void)pause();
}

static int fork_until_refused(void)
{
	int n = 0;

	while (n < OUTSIDE + LIMIT) {
		pid_t pid = fork();

		if (pid < 0)
			break;
		if (pid == 0)
			idle();
		n++;
	}
	return n;
}

int main(void)
{
	int go[2], up[2];
	pid_t outside[OUTSIDE];

	/* Root is not counted: become another user. */
	if (geteuid() == 0)
		probe_must(setgroups(0, NULL) == 0 && setresgid(54321, 54321, 54321) == 0 &&
				   setresuid(54321, 54321, 54321) == 0 &&
				   prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0,
			   "become an ordinary user");
	probe_must(pipe(go) == 0 && pipe(up) == 0, "pipe");
	for (int i = 0; i < OUTSIDE; i++) {
		outside[i] = fork();
		probe_must(outside[i] >= 0, "fork outside");
		if (outside[i] == 0)
			idle();
	}
	pid_t init = probe_clone(CLONE_NEWUSER | CLONE_NEWPID);

	probe_must(init >= 0, "clone a user namespace");
	if (init == 0) {
		struct rlimit limit = { LIMIT, LIMIT };

		if (probe_wait(go[0], 5000) != 1 || setresuid(1000, 1000, 1000) < 0 ||
		    setrlimit(RLIMIT_NPROC, &limit) < 0)
			_exit(PROBE_CANNOT);
		/* A new process, because what init holds as creator of the namespace would exempt
		 * it. */
		pid_t agent = fork();

		if (agent == 0) {
			struct {
				uint32_t version;
				int pid;
			} head = { 0x20080522, 0 };
			uint32_t none[6] = { 0 };

			if (syscall(SYS_capset, &head, none) < 0)
				_exit(PROBE_CANNOT);
			char n = (char)fork_until_refused();

			(void)!write(up[1], &n, 1);
			_exit(0);
		}
		_exit(probe_exit_code(agent)); /* takes all of them with it */
	}
	probe_must(probe_map(init, 1000, geteuid()) == 0, "map an id");
	(void)!write(go[1], "x", 1);
	int code = probe_exit_code(init);
	char n = -1;

	for (int i = 0; i < OUTSIDE; i++) {
		(void)kill(outside[i], SIGKILL);
		(void)waitpid(outside[i], NULL, 0);
	}
	if (code != 0 || read(up[0], &n, 1) != 1)
		probe_end(PROBE_CANNOT, "the child ended with %d", code);
	/* init and the agent are two of them. */
	if (n != LIMIT - 2)
		probe_end(PROBE_FAILS, "%d outside, limit %d: %d forks inside", OUTSIDE, LIMIT, n);
	probe_end(PROBE_HOLDS, "%d outside do not count, inside ends at %d", OUTSIDE, LIMIT);
}
