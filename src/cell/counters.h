/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counters.h - Counts that the Linux kernel keeps per user or for the whole machine, and a cell's
 * share of them.
 *
 * The resources of a process (inotify instances, queued signals, message queues) are charged to its
 * user in its user namespace, and then once more in each namespace above, to the user who made the
 * namespace below. So two things bound a cell: the limits of its own namespace, and a maker that
 * makes no other. As root the maker is the cell's own first id; for cells that a zygote enters it
 * is the zygote's user, whose account they share, because only the maker may enter.
 * docs/threat-model.md has the table of all counters.
 */
#ifndef CAISSON_CELL_COUNTERS_H
#define CAISSON_CELL_COUNTERS_H

struct plan;

#define COUNTERS_PARTS 8   /* no cell has more than this part of what its maker may have */
#define COUNTERS_PTYS "32" /* terminals of one cell; kernel.pty.max is the machine's */

/* Texts, because the child between clone and exec formats nothing. */
struct counters {
	char inotify_instances[24], inotify_watches[24];
};

/* counters_choose() - The parent's half: the shares of a cell, from the limits that this machine
 * had at the first call. */
void counters_choose(struct counters *ret);

/* counters_limit() - The child's half: limit its own user namespace, or end it. */
void counters_limit(const struct plan *p);

#endif
