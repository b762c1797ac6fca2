/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine.h - The warden's part, and the child's, in what a cell sees of its machine
 * (wire/machine.h). All of it is information: the cgroup is the limit. So a Linux kernel that lacks
 * a part of it costs that part, and not the cell.
 */
#ifndef CAISSON_CELL_MACHINE_H
#define CAISSON_CELL_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/machine.h"

struct cell_limits;
struct cgroup;
struct init_config;
struct plan;

struct machine_plan {
	struct machine_cpus cpus;
	char clock[64]; /* for timens_offsets; empty: the cell has the machine's uptime */
	int watch_fd;   /* -1: none */
	int gauges[MACHINE_GAUGES];
};

/* machine_plan() - Choose the processors of a cell, and the zero of its uptime.
 * @ret_config: its seen_ members are set. */
void machine_plan(const struct cell_limits *limits, struct machine_plan *ret,
		  struct init_config *ret_config);

/*
 * machine_open() - Open for @p what only the warden can. @cgroup: created, or NULL.
 * @live: with a fanotify group, where this warden may make one. The Linux kernel takes about 14 ms
 * to close it, on the way of pid 1 out: a client that waits for the end of the cell wants none.
 */
void machine_open(struct plan *p, const struct cgroup *cgroup, bool live);

/* machine_close() - Idempotent. */
void machine_close(struct machine_plan *m);

/* ---- the child, between clone and exec: system calls only ----------------------------------- */

/* machine_enter() - Take the processors and the clock. While the host's /proc is there, and the
 * files of this process in it may be written. */
void machine_enter(const struct plan *p);

/* machine_place() - Cover the files of /proc, the current directory, by new ones on @layer. */
void machine_place(const struct plan *p, int layer);

/* machine_descriptors() - For init, from MACHINE_FD_FILES on; -1: nothing. */
void machine_descriptors(const struct plan *p, int ret[MACHINE_FD_END - MACHINE_FD_FILES]);

#endif
