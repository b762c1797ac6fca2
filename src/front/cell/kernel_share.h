/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_share.h - The front's time that the control lines of one cell take.
 *
 * Control lines are dear: the front parses them, and passes them on to everyone who listens, while
 * everybody else waits. So a cell is charged for the processor time that its lines take, and its
 * requests for packages. A cell that owes more than a burst has to rest: a flood slows the cell
 * that makes it. Cells that rest at the same time rest longer, so that all floods together get the
 * share of one.
 */
#ifndef CAISSON_FRONT_KERNEL_SHARE_H
#define CAISSON_FRONT_KERNEL_SHARE_H

#include <stdbool.h>
#include <stdint.h>

/* So many times as long must pass before a time is forgotten. */
#define KERNEL_SHARE_TIMES 8u
/* May be owed without a rest: twice the time for all displays that one execution may have. */
#define KERNEL_SHARE_BURST_NS UINT64_C(3000000000)
/* A kernel that begins an execution is forgiven this much: the lines that every execution has. */
#define KERNEL_SHARE_GRANT_NS UINT64_C(1000000)

struct kernel_share {
	uint64_t owed_ns;
	uint64_t at_ns; /* when owed_ns was computed */
};

/* kernel_share_clock() - The processor time of the front so far. */
uint64_t kernel_share_clock(void);
void kernel_share_forgive(struct kernel_share *s, uint64_t ns);
void kernel_share_charge(struct kernel_share *s, uint64_t ns, uint64_t now_ns);
/*
 * kernel_share_rest() - How long @s has to rest, as one of all that do; 0: it may go on. Bounded.
 * @owing: whether it rests, until kernel_share_rested(), which is idempotent
 */
uint64_t kernel_share_rest(const struct kernel_share *s, bool *owing);
void kernel_share_rested(bool *owing);

#endif
