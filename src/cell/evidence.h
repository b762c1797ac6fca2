/* SPDX-License-Identifier: Apache-2.0 */
/* evidence.h - Collect the texts of /proc about every thread of a cell. */
#ifndef CAISSON_CELL_EVIDENCE_H
#define CAISSON_CELL_EVIDENCE_H

#include <sys/types.h>

struct cgroup;
struct err;

/*
 * evidence_collect() - A sealed memfd in the format of wire/evidence.h.
 * @init:   host pid of the cell's pid 1
 * @kernel: a process of the cell that is not a descendant of @init; 0: none
 * @cgroup: the cell's, or NULL
 *
 * Processes that come or go meanwhile may be missing; bounded in size. Descriptor or -errno.
 */
int evidence_collect(pid_t init, pid_t kernel, const struct cgroup *cgroup, struct err *e);

#endif
