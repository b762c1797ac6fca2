/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup_enter.h - How a cell's first process gets into its v1 cgroups without waiting.
 *
 * Writing another process's pid to cgroup.procs takes a lock whose writer waits for an RCU grace
 * period: 4 to 15 ms on an idle machine, more than all the rest of making a cell. The kernel skips
 * that lock for one case: a single thread that moves itself, by writing "0" to `tasks`. So the
 * parent opens the files (the permission is the opener's) and the child, which is one thread, does
 * the writing. The unified tree needs none of this: clone3() makes the child inside it.
 */
#ifndef CAISSON_CELL_CGROUP_ENTER_H
#define CAISSON_CELL_CGROUP_ENTER_H

#include <stddef.h>
#include <sys/types.h>

#include "cell/cgroup.h"

struct err;

struct cgroup_enter {
	int fd[CGROUP_DIRS_MAX];
	size_t n;
};

/* cgroup_enter_open() - In the parent: the descriptors to write to; none on pure v2. */
int cgroup_enter_open(const struct cgroup *c, struct cgroup_enter *ret, struct err *e);

/*
 * cgroup_join_open() - The same for a process of @uid that somebody else clones: a zygote's kernel.
 *
 * On v1 the kernel lets the holder of `tasks` move what the user who opened it may move: for root
 * every process of the machine, for another user that user's own processes. So the files are opened
 * as @uid (as_user.h), and the holder can put its own processes into this cell and nobody else's.
 *
 * On pure v2 the kernel compares no users, so nobody is given a descriptor there: cgroup_move().
 */
int cgroup_join_open(const struct cgroup *c, uid_t uid, struct cgroup_enter *ret, struct err *e);

/*
 * cgroup_move() - On pure v2: move a process in, whole. It waits for the lock described above. On
 * v1 the process has moved itself, and this does nothing.
 * @pid: a child of the caller's that was not waited for, so that the number cannot be another
 * process's
 */
int cgroup_move(const struct cgroup *c, pid_t pid, struct err *e);

/* cgroup_enter_self() - In the child, still one thread: move in. System calls only. 0 or -errno. */
int cgroup_enter_self(const struct cgroup_enter *c);

void cgroup_enter_close(struct cgroup_enter *c);

#endif
