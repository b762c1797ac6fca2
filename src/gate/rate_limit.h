/* SPDX-License-Identifier: Apache-2.0 */
/* rate_limit.h - A limit of events per second, with a burst. */
#ifndef CAISSON_GATE_RATE_LIMIT_H
#define CAISSON_GATE_RATE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct rate_limit {
	uint64_t rate, burst;
	uint64_t full_ns; /* when the whole burst is available again */
};

/* rate_limit_take() - Count one event. False: it exceeds the limit. */
static inline bool rate_limit_take(struct rate_limit *b, uint64_t now_ns)
{
	uint64_t each = CLOCK_NS_PER_S / b->rate;

	if (b->full_ns < now_ns)
		b->full_ns = now_ns;
	if (b->full_ns - now_ns + each > b->burst * each)
		return false;
	b->full_ns += each;
	return true;
}

#endif
