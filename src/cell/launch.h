/* SPDX-License-Identifier: Apache-2.0 */
/* launch.h - Clone a planned cell and see it through until init runs. */
#ifndef CAISSON_CELL_LAUNCH_H
#define CAISSON_CELL_LAUNCH_H

#include <sys/types.h>

struct cgroup;
struct err;
struct plan;

struct launched {
	pid_t pid;      /* init, as the host counts; a child of the caller, to be waited for */
	int pidfd;      /* the same, safe to signal */
	int channel_fd; /* the client's end of init's channel; INIT_CONFIG is already on its way. A
			 * zygote's: the warden's end of its socket */
	int sync_fd;    /* readable when the child has become what it shall be, or failed */
	int status_fd;  /* zygote: the client's end of its status socket, otherwise -1 */
};

#define LAUNCH_DEADLINE_NS 20000000000ull

/*
 * launch_begin() - Clone what @p describes and set it going.
 * @cgroup: created, or NULL when the caller chose to go without
 *
 * Does not wait: when ret->sync_fd is readable, launch_end() tells how it went. @p must live until
 * then. On failure nothing is held.
 */
int launch_begin(struct plan *p, const struct cgroup *cgroup, struct launched *ret, struct err *e);

/*
 * launch_end() - Whether init (or the zygote) has been executed. Closes ret->sync_fd.
 * On failure the child is gone and reaped, nothing is held, and the message names the step and,
 * where known, the fix.
 */
int launch_end(const struct plan *p, struct launched *l, struct err *e);

/* launch_abort() - Kill and reap the child of a begun launch; close everything. */
void launch_abort(struct launched *l);

#endif
