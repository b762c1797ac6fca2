/* SPDX-License-Identifier: Apache-2.0 */
/* clock.c - Read the monotonic clock. */
#include "base/clock.h"

#include <time.h>

uint64_t clock_now_ns(void)
{
	struct timespec ts = { 0 };

	/* Cannot fail: the clock is always there and the pointer is ours. */
	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * CLOCK_NS_PER_S + (uint64_t)ts.tv_nsec;
}
