/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_share.c - Count the front's time that a cell takes. */
#include "front/cell/kernel_share.h"

#include <time.h>

#include "base/clock.h"

#define REST_MAX_NS (10 * CLOCK_NS_PER_S)

static unsigned int n_owing; /* that rest */

uint64_t kernel_share_clock(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * CLOCK_NS_PER_S + (uint64_t)t.tv_nsec;
}

void kernel_share_forgive(struct kernel_share *s, uint64_t ns)
{
	s->owed_ns -= ns < s->owed_ns ? ns : s->owed_ns;
}

void kernel_share_charge(struct kernel_share *s, uint64_t ns, uint64_t now_ns)
{
	kernel_share_forgive(s, (now_ns - s->at_ns) / KERNEL_SHARE_TIMES);
	s->at_ns = now_ns;
	s->owed_ns += ns;
}

uint64_t kernel_share_rest(const struct kernel_share *s, bool *owing)
{
	kernel_share_rested(owing);
	if (s->owed_ns <= KERNEL_SHARE_BURST_NS)
		return 0;
	*owing = true;
	n_owing++;
	uint64_t ns = (s->owed_ns - KERNEL_SHARE_BURST_NS) * KERNEL_SHARE_TIMES * n_owing;

	return ns < REST_MAX_NS ? ns : REST_MAX_NS;
}

void kernel_share_rested(bool *owing)
{
	n_owing -= *owing;
	*owing = false;
}
