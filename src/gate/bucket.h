/* SPDX-License-Identifier: Apache-2.0 */
/* bucket.h - So many per second, and so many at once. */
#ifndef CAISSON_GATE_BUCKET_H
#define CAISSON_GATE_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct bucket {
	uint64_t rate, burst;
	uint64_t full_ns; /* when it would be full again */
};

/* bucket_take() - One. False: there is none. */
static inline bool bucket_take(struct bucket *b, uint64_t now_ns)
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
