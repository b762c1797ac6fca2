/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pidns_death.c - Once pid 1 is reaped, nothing of its namespace runs any more.
 *
 * The warden ends a cell by killing its pid 1 and takes the successful wait for it as the proof
 * that every other process of the cell is dead (src/warden/warden_cell.c): output pipes have an
 * end, cgroups are empty, and no file of the caller is written any more. Here pid 1 has a crowd of
 * children and grandchildren, stopped ones and ones that ignore all signals, each with a copy of
 * a pipe. At the moment in which wait() returns, the pipe must be at its end.
 */
#include "probe.h"

#define CROWD 40

static _Noreturn void resist(int i)
{
	for (int sig = 1; sig < NSIG; sig++)
		(void)signal(sig, SIG_IGN);
	if (i % 3 == 0)
		(void)fork();
	if (i % 5 == 0)
		(void)raise(SIGSTOP);
	(void)setsid();
	for (;;)
		(void)pause();
}

int main(void)
{
	uint64_t flags = CLONE_NEWPID | (geteuid() == 0 ? 0u : (uint64_t)CLONE_NEWUSER);

	for (int round = 0; round < 20; round++) {
		int ready[2], life[2];

		probe_must(pipe(ready) == 0 && pipe(life) == 0, "pipe");
		pid_t init = probe_clone(flags);

		probe_must(init >= 0, "clone a pid namespace");
		if (init == 0) {
			(void)close(life[0]);
			for (int i = 0; i < CROWD; i++)
				if (fork() == 0)
					resist(i);
			(void)!write(ready[1], "x", 1);
			for (;;)
				(void)pause();
		}
		(void)close(life[1]);
		probe_must(probe_wait(ready[0], 10000) == 1, "fill the namespace");
		(void)kill(init, SIGKILL);
		(void)waitpid(init, NULL, 0);

		struct pollfd p = { .fd = life[0], .events = POLLIN };

		if (poll(&p, 1, 0) != 1 || !(p.revents & POLLHUP))
			probe_end(PROBE_FAILS, "round %d: pid 1 was reaped while others lived",
				  round);
		(void)close(life[0]);
		(void)close(ready[0]);
		(void)close(ready[1]);
	}
	probe_end(PROBE_HOLDS, "nothing outlived the wait for pid 1");
}
