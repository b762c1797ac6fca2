/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nursery.h - What the cloned child does before it becomes a zygote.
 *
 * A zygote is not in a cell, because it has to be able to enter many. So it is confined by other
 * means: a user of its own without any capability, a root file system like a cell's (the image,
 * read-only, nothing of the host's), its own mount, network, ipc, uts and cgroup namespaces, its
 * own cgroup with limits (which it and what it forks can leave only for those of its cells), /proc that shows it only
 * itself, and no new privileges ever. It never
 * sees a client's bytes; this is against what an image may bring.
 *
 * Without root there is no second user and no private root to be had: the zygote is then an
 * ordinary process of the caller, and only the host's own image can have one.
 */
#ifndef CAISSON_CELL_NURSERY_H
#define CAISSON_CELL_NURSERY_H

struct plan;

/* nursery_run() - Seal and exec the interpreter. Never returns; reports like stage_run(). */
_Noreturn void nursery_run(const struct plan *p);

#endif
