/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pdeathsig.c - The parent-death signal is cleared by a change of ids, and kept by execve.
 *
 * A cell dies with its warden because its first process asks for SIGKILL at the parent's death
 * (src/cell/stage.c). The kernel forgets that wish when the process changes its user or group
 * id, so stage.c asks again after each change; and it keeps it over execve of an ordinary
 * program, so that there is no gap between stage.c and init. Should the first stop being true,
 * asking twice does no harm; should the second, a killed warden could leave a cell. Without root
 * there is only one id, taking it changes nothing, and the wish stays.
 */
#include "probe.h"

#include <sys/prctl.h>

static int wish(void)
{
	int sig = -1;

	return prctl(PR_GET_PDEATHSIG, &sig, 0, 0, 0) < 0 ? -1 : sig;
}

int main(int argc, char **argv)
{
	if (argc > 1) /* after execve */
		_exit(wish() == SIGKILL ? PROBE_HOLDS : PROBE_FAILS);
	int go[2], root = geteuid() == 0;

	probe_must(pipe(go) == 0, "pipe");
	pid_t pid = probe_clone(CLONE_NEWUSER);

	probe_must(pid >= 0, "clone a user namespace");
	if (pid == 0) {
		(void)close(go[1]);
		if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || probe_wait(go[0], 5000) != 1)
			_exit(PROBE_CANNOT);
		if (wish() != SIGKILL)
			probe_end(PROBE_FAILS, "not set in the first place");
		if (setresuid(1000, 1000, 1000) < 0)
			_exit(PROBE_CANNOT);
		if (wish() != (root ? 0 : SIGKILL))
			probe_end(PROBE_FAILS, "after setresuid it is %d", wish());
		if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
			_exit(PROBE_CANNOT);
		char word[] = "after";
		char *const again[] = { argv[0], word, NULL };

		(void)execv("/proc/self/exe", again);
		_exit(PROBE_CANNOT);
	}
	/* Root maps an id that is not the process's own: taking it is a change. */
	probe_must(probe_map(pid, 1000, root ? 0x60000000 : geteuid()) == 0, "map an id");
	(void)!write(go[1], "x", 1);
	int code = probe_exit_code(pid);

	if (code == PROBE_FAILS)
		probe_end(PROBE_FAILS,
			  "the parent-death signal did not survive execve, or survived setresuid");
	if (code != PROBE_HOLDS)
		probe_end(PROBE_CANNOT, "the child ended with %d", code);
	probe_end(PROBE_HOLDS, "cleared by setresuid, kept by execve");
}
