/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zygote.h - One warm interpreter as the warden holds it: it forks kernels into cells on request.
 *
 * A zygote may enter its cells with every capability that counts in them, and only its own code
 * seals a kernel. So it is the machine's own python and never an image's: an image's code is a
 * stranger's, and its kernels are started and sealed by the cell's pid 1. The warden does not trust
 * a zygote all the same: its answer is a pid, which is checked against the cell before it is used.
 * When it dies, the client that waits for a kernel gets an error, and kernels that it forked before
 * live on.
 */
#ifndef CAISSON_WARDEN_ZYGOTE_H
#define CAISSON_WARDEN_ZYGOTE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cell/cgroup.h"
#include "cell/journal.h"
#include "cell/launch.h"
#include "wire/warden.h"

struct cell;
struct cell_host;
struct plan;
struct remains_list;

struct zygote {
	uint32_t handle;
	uint32_t index, serial;
	int epoll;
	struct launched l; /* channel_fd: our end of its socket */
	struct plan *plan; /* while it is being made */
	struct cell_spec spec;
	struct record record;
	bool has_cgroup;
	struct cgroup cgroup;
	uid_t uid;            /* its user, who owns the user namespaces of its cells */
	uint64_t deadline_ns; /* by when it has to be made */
	uint64_t create_seq;
};

/* zygote_begin() - Journal, cgroup, clone; z->l.sync_fd tells when it is over. */
int zygote_begin(struct cell_host *h, const struct cell_spec *spec, struct zygote *ret,
		 struct err *e);

/* zygote_made() - Sync is readable. On failure nothing is left. */
int zygote_made(struct zygote *z, struct err *e);

/*
 * zygote_fork() - Ask for a kernel in @c. The answer comes on z->l.channel_fd, with c->handle as
 * its number. The client's ends of the kernel's pipes and of its hello socket are in @c.
 */
int zygote_fork(struct zygote *z, struct cell *c, struct err *e);

/*
 * zygote_answer() - Read one answer.
 * Return: 1 with @ret_handle, @ret_code and @ret_pid, 0 when it is gone, -EAGAIN for nothing yet.
 */
int zygote_answer(struct zygote *z, uint32_t *ret_handle, int *ret_code, pid_t *ret_pid);

/*
 * zygote_adopt() - @pid is the process that a zygote reports as its kernel in @c. Check it, hold
 * it, put it into the cell's cgroups where it could not do so itself, and let it continue.
 */
int zygote_adopt(struct cell *c, pid_t pid, struct err *e);

/*
 * zygote_end() - Kill it and every process that it forked that is not in a cell. Does not wait: its
 * cgroup and record go to @remains. Return: the pid to wait for, 0 when there is none.
 */
pid_t zygote_end(struct zygote *z, struct remains_list *remains);

#endif
