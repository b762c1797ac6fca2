/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_zygote.h - What the cloned child does before it becomes a zygote.
 *
 * A zygote is not in a cell, because it has to be able to enter many. So it is confined by other
 * means: a user of its own without any capability, a root file system like a cell's (a read-only
 * view of /usr), its own mount, network, ipc, uts and cgroup namespaces, its own cgroup with limits
 * (which it and its children can leave only for those of its cells), /proc that shows it only
 * itself, and no new privileges ever. It never sees a client's bytes; this bounds the harm of a
 * module that was preloaded.
 *
 * Without root there is no second user and no private root to be had: the zygote is then an
 * ordinary process of the caller.
 */
#ifndef CAISSON_CELL_STAGE_ZYGOTE_H
#define CAISSON_CELL_STAGE_ZYGOTE_H

struct plan;

/* stage_zygote_run() - Seal and exec the interpreter. Never returns; reports like stage_run(). */
_Noreturn void stage_zygote_run(const struct plan *p);

#endif
