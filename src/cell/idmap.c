/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idmap.c - Id maps, written by the parent for a child that waits.
 *
 * A child cannot write the map of a range that is not its own id: that takes the capabilities of
 * the parent, in the parent's user namespace. An id-mapped mount takes a user namespace, and that
 * exists only with a process in it: one is cloned for the moment in which the namespace is opened.
 */
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

_Static_assert(CELL_UID == CELL_GID, "struct idmap has one number for both");

/* Whether the ids of cells are mapped here; in a container they may not be. */
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
		.self = CELL_UID,
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
	int r;

	(void)snprintf(uids, sizeof(uids), "%u %u %u\n", m->ranged ? 0 : m->self,
		       m->ranged ? m->base : m->caller_uid, m->ranged ? IDMAP_COUNT : 1);
	(void)snprintf(gids, sizeof(gids), "%u %u %u\n", m->ranged ? 0 : m->self,
		       m->ranged ? m->base : m->caller_gid, m->ranged ? IDMAP_COUNT : 1);
	/* The Linux kernel's price for an unprivileged gid map: group lists cannot change. */
	if (!m->ranged && (r = write_proc(child, "setgroups", "deny", e)) < 0)
		return r;
	r = write_proc(child, "uid_map", uids, e);
	return r < 0 ? r : write_proc(child, "gid_map", gids, e);
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
		/* It has to exist until the parent has opened its namespace, and ends with the
		 * parent. It must not hold the parent's locks on journal records either. */
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
	if (r == 0 && (fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		r = err_set(e, -errno, "open the user namespace of an id-mapped mount");
	(void)kill(pid, SIGKILL);
	(void)TEMP_FAILURE_RETRY(waitpid(pid, NULL, 0));
	return r < 0 ? r : fd;
}
