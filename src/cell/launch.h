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
	int channel_fd; /* the client's end of init's channel; INIT_CONFIG is already on its way */
};

/*
 * launch() - Make the cell that @p describes.
 * @cgroup: created, or NULL when the caller chose to go without
 *
 * Returns when init has been executed. On failure the child is gone and reaped, nothing is held,
 * and the message names the step and, where known, the fix.
 */
int launch(struct plan *p, const struct cgroup *cgroup, struct launched *ret, struct err *e);

#endif
