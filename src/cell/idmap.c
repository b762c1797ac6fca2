/* SPDX-License-Identifier: Apache-2.0 */
/* idmap.c - Writing id maps, by a parent, for a child that waits. */
#include "cell/idmap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "cell/spec.h"

/* Are the ids that cells would get ours to give? Not in the small namespace of a container. */
static bool range_mapped(void)
{
	char text[4096];

	if (fd_read_file(AT_FDCWD, "/proc/self/uid_map", text, sizeof(text)) <= 0)
		return false;
	for (char *p = text, *end; *p; p = *end ? end + 1 : end) {
		unsigned long long first = strtoull(p, &p, 10);

		(void)strtoull(p, &p, 10);
		unsigned long long count = strtoull(p, &p, 10);

		end = p + strcspn(p, "\n");
		if (first <= IDMAP_BASE &&
		    first + count >=
			    IDMAP_BASE + (unsigned long long)WARDEN_CELLS_MAX * IDMAP_COUNT)
			return true;
	}
	return false;
}

void idmap_choose(uint32_t slot, struct idmap *ret)
{
	*ret = (struct idmap){
		.ranged = geteuid() == 0 && range_mapped(),
		.base = IDMAP_BASE + slot * IDMAP_COUNT,
		.caller_uid = geteuid(),
		.caller_gid = getegid(),
	};
}

static int write_proc(pid_t pid, const char *name, const char *text, struct err *e)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	int r = fd_write_file(AT_FDCWD, path, text);

	return r < 0 ? err_set(e, r, "write %s of the new user namespace", name) : 0;
}

int idmap_write(const struct idmap *m, pid_t child, struct err *e)
{
	char uids[64], gids[64];
	int r = 0;

	if (m->ranged) {
		(void)snprintf(uids, sizeof(uids), "0 %u %u\n", m->base, IDMAP_COUNT);
		(void)snprintf(gids, sizeof(gids), "0 %u %u\n", m->base, IDMAP_COUNT);
	} else {
		(void)snprintf(uids, sizeof(uids), "%u %u 1\n", CELL_UID, (unsigned)m->caller_uid);
		(void)snprintf(gids, sizeof(gids), "%u %u 1\n", CELL_GID, (unsigned)m->caller_gid);
		/* The kernel's price for an unprivileged gid map: group lists can not change. */
		r = write_proc(child, "setgroups", "deny", e);
	}
	if (r == 0)
		r = write_proc(child, "uid_map", uids, e);
	if (r == 0)
		r = write_proc(child, "gid_map", gids, e);
	return r;
}

int idmap_userns(uint32_t uid, uint32_t gid, uint32_t to, uint32_t count, struct err *e)
{
	struct clone_args args = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };
	char uids[64], gids[64], path[64];
	pid_t parent = getpid();
	pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));

	if (pid < 0)
		return err_set(e, -errno, "clone a user namespace for an id-mapped mount");
	if (pid == 0) {
		/* Only has to exist until the parent has opened its namespace, and not longer than
		 * it. It must not hold the parent's locks on journal records either. */
		if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent ||
		    syscall(SYS_close_range, 0u, ~0u, 0u) < 0)
			_exit(1);
		for (;;)
			(void)pause();
	}
	(void)snprintf(uids, sizeof(uids), "%u %u %u\n", uid, to, count);
	(void)snprintf(gids, sizeof(gids), "%u %u %u\n", gid, to, count);
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	int fd = -1, r = write_proc(pid, "uid_map", uids, e);

	if (r == 0)
		r = write_proc(pid, "gid_map", gids, e);
	if (r == 0) {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			r = err_set(e, -errno, "open the user namespace of an id-mapped mount");
	}
	(void)kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return r < 0 ? r : fd;
}
