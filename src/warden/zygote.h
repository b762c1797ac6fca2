/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zygote.h - One warm interpreter as the warden holds it: it forks kernels into cells on request.
 *
 * The warden does not believe a zygote: it runs an image's interpreter. What it says is a pid, and
 * that is checked against the cell before it is used. When it dies, whoever waits for a kernel is
 * told so, and kernels that it forked before live on.
 */
#ifndef CAISSON_WARDEN_ZYGOTE_H
#define CAISSON_WARDEN_ZYGOTE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cell/cgroup.h"
#include "cell/launch.h"
#include "cell/record.h"
#include "wire/warden.h"

struct cell;
struct cell_host;
struct err;
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
	int lease_fd;         /* its image is in use; or -1 */
	uid_t uid;            /* its user, who owns the user namespaces of its cells */
	uint64_t deadline_ns; /* by when it has to be made */
	uint64_t create_seq;
};

/* zygote_begin() - Journal, cgroup, clone; z->l.sync_fd tells when it is over. */
int zygote_begin(struct cell_host *h, const struct cell_spec *spec, const int *fds, size_t n_fds,
		 struct zygote *ret, struct err *e);

/* zygote_made() - Sync is readable. On failure nothing is left. */
int zygote_made(struct zygote *z, struct err *e);

/* zygote_fork() - Ask for a kernel in @c. The answer comes on z->l.channel_fd, with c->handle as its number. */
int zygote_fork(struct zygote *z, struct cell *c, struct err *e);

/*
 * zygote_answer() - Read one answer.
 * Return: 1 with @ret_handle, @ret_code and @ret_pid, 0 when it is gone, -EAGAIN for nothing yet.
 */
int zygote_answer(struct zygote *z, uint32_t *ret_handle, int *ret_code, pid_t *ret_pid);

/* zygote_adopt() - @pid is what a zygote says it forked into @c. Check it and hold it. */
int zygote_adopt(struct cell *c, pid_t pid, struct err *e);

/*
 * zygote_end() - Kill it and whatever it forked that is not in a cell. Does not wait: what is left of it is among
 * @remains then. Return: the pid to wait for, 0 when there is none.
 */
pid_t zygote_end(struct zygote *z, struct remains_list *remains);

#endif
