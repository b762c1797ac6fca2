/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flock_sigkill.c - A lock goes with its owner, however the owner dies.
 *
 * The journal takes "can I lock the record?" for "is its warden dead?" (src/cell/journal.c). That
 * is right only if flock() is dropped when its owner is killed with SIGKILL, at the latest when
 * the death can be waited for, and if it cannot be taken while the owner lives. A copy of the
 * descriptor in another process keeps the lock: that is why no process that may outlive the
 * warden may inherit the record's descriptor. Both are shown.
 */
#include "probe.h"

#include <sys/file.h>

static pid_t owner(const char *path, int keep_copy, int ready)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		_exit(1);
	if (keep_copy) {
		pid_t heir = fork();

		if (heir == 0) {
			(void)!write(ready, "x", 1);
			(void)sleep(1);
			_exit(0);
		}
	} else {
		(void)!write(ready, "x", 1);
	}
	for (;;)
		(void)pause();
}

int main(void)
{
	char path[] = "/tmp/probe-flock.XXXXXX";
	int fd = mkstemp(path), ready[2];

	probe_must(fd >= 0 && pipe(ready) == 0, "make a file and a pipe");
	for (int keep = 0; keep < 2; keep++) {
		pid_t pid = owner(path, keep, ready[1]);

		probe_must(pid > 0 && probe_wait(ready[0], 5000) == 1, "start an owner");
		int while_alive = flock(fd, LOCK_EX | LOCK_NB);

		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
		int after = flock(fd, LOCK_EX | LOCK_NB);

		(void)flock(fd, LOCK_UN);
		if (while_alive == 0 || (after == 0) == (keep == 1)) {
			(void)unlink(path);
			probe_end(PROBE_FAILS,
				  "copy kept %d: locked while alive %d, after death %d", keep,
				  while_alive, after);
		}
	}
	(void)unlink(path);
	probe_end(PROBE_HOLDS,
		  "a lock ends with SIGKILL of its owner, unless a copy of the descriptor lives");
}
