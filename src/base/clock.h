/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h - Monotonic time, for every deadline and duration. */
#ifndef CAISSON_BASE_CLOCK_H
#define CAISSON_BASE_CLOCK_H

#include <stdint.h>

#define CLOCK_NS_PER_MS UINT64_C(1000000)
#define CLOCK_NS_PER_S UINT64_C(1000000000)

/* clock_now_ns() - Nanoseconds of CLOCK_MONOTONIC; comparable between processes of one boot. */
uint64_t clock_now_ns(void);

#endif
