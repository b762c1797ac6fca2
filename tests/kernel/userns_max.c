/* SPDX-License-Identifier: Apache-2.0 */
/*
 * userns_max.c - /proc/sys/user/max_user_namespaces is the reader's own, and can be set to 0
 * below.
 *
 * The cell's first process writes 0 there before it starts init (src/cell/stage.c): whatever the
 * system call filter misses, no user namespace can be made in the cell. That works only if the
 * file shows the user namespace of who opens it, if root of that namespace may write it, if the
 * limit then binds all that is below, root of the namespace included, and if the namespaces
 * above do not feel it.
 */
#include "probe.h"

#include <sched.h>

static unsigned long limit_now(void)
{
	char text[32] = "";
	int fd = open("/proc/sys/user/max_user_namespaces", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		(void)close(fd);
	return n > 0 ? strtoul(text, NULL, 10) : 0;
}

int main(void)
{
	unsigned long before = limit_now();
	int go[2];

	probe_must(before > 0 && pipe(go) == 0, "read the limit");
	pid_t pid = probe_clone(CLONE_NEWUSER);

	probe_must(pid >= 0, "clone a user namespace");
	if (pid == 0) {
		if (probe_wait(go[0], 5000) != 1)
			_exit(PROBE_CANNOT);
		if (unshare(CLONE_NEWUTS) < 0)
			_exit(PROBE_CANNOT);
		if (probe_write("/proc/sys/user/max_user_namespaces", "0") < 0)
			_exit(errno == EROFS || errno == EACCES ? PROBE_CANNOT : 10);
		if (limit_now() != 0)
			_exit(11);
		if (unshare(CLONE_NEWUSER) == 0 || errno != ENOSPC)
			_exit(12);
		_exit(PROBE_HOLDS);
	}
	probe_must(probe_map(pid, 0, geteuid()) == 0, "map an id");
	(void)!write(go[1], "x", 1);
	int code = probe_exit_code(pid);

	if (code == PROBE_CANNOT)
		probe_end(PROBE_CANNOT, "the file cannot be written here (a read-only /proc?)");
	if (code != PROBE_HOLDS)
		probe_end(PROBE_FAILS, "step %d: 10 not writable, 11 not ours, 12 not enforced",
			  code);
	if (limit_now() != before)
		probe_end(PROBE_FAILS, "the limit of the namespace above changed, too");
	pid_t again = probe_clone(CLONE_NEWUSER);

	if (again == 0)
		_exit(0);
	if (again < 0 || probe_exit_code(again) != 0)
		probe_end(PROBE_FAILS, "the namespace above can make none any more");
	probe_end(PROBE_HOLDS, "0 binds the namespace in which it was written, and no other");
}
