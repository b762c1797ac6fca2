/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pid1_immune.c - A pid 1 cannot be killed or stopped from inside its namespace.
 *
 * Without root a cell's init runs under the same user as the code it starts, so permissions do
 * not keep the two apart. The Linux kernel does: it drops signals for a pid 1 that has no handler,
 * SIGKILL and SIGSTOP included, when they come from inside of its namespace, and delivers
 * SIGKILL from outside (src/init/init.c, src/warden/warden_cell.c). The child here sends every
 * signal to its pid 1.
 */
#include "probe.h"

int main(void)
{
	uint64_t flags = CLONE_NEWPID | (geteuid() == 0 ? 0u : (uint64_t)CLONE_NEWUSER);
	int done[2];

	probe_must(pipe(done) == 0, "pipe");
	pid_t init = probe_clone(flags);

	probe_must(init >= 0, "clone a pid namespace");
	if (init == 0) {
		pid_t guest = fork();

		if (guest == 0) {
			for (int sig = 1; sig < NSIG; sig++)
				(void)kill(1, sig);
			_exit(0);
		}
		(void)waitpid(guest, NULL, 0);
		(void)!write(done[1], "x", 1);
		for (;;)
			(void)pause();
	}
	int lives = probe_wait(done[0], 5000);

	if (lives != 1)
		probe_end(PROBE_FAILS, "pid 1 was killed or stopped from inside");
	(void)kill(init, SIGKILL);
	if (probe_exit_code(init) != 128 + SIGKILL)
		probe_end(PROBE_FAILS, "SIGKILL from outside did not end pid 1");
	probe_end(PROBE_HOLDS, "signals from inside are dropped, SIGKILL from outside is not");
}
