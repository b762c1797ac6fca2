/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limiter.h - Slow down clients that guess tokens, by their address.
 *
 * Ten wrong tokens within ten seconds block the address for a second; each further wrong one after
 * that blocks it again, for twice as long, up to a minute. A minute without a failure (counted from
 * the end of a block) forgets all of it. A block is for wrong tokens alone: others share the
 * address. Addresses are given as peer.net has them (net/conn.h). The table is of fixed size: a new
 * address takes the place of the one in its row that failed longest ago. Which row an address falls
 * into is not predictable from outside.
 */
#ifndef CAISSON_FRONT_LIMITER_H
#define CAISSON_FRONT_LIMITER_H

#include <stdbool.h>
#include <stdint.h>

#define LIMITER_ROWS 256
#define LIMITER_WAYS 4

struct limiter_entry {
	uint64_t key; /* 0: empty */
	uint64_t window_ns, last_ns, until_ns;
	uint32_t failures; /* in the window */
	uint32_t penalty_s;
};

struct limiter {
	uint64_t seed[2];
	struct limiter_entry entries[LIMITER_ROWS][LIMITER_WAYS];
};

void limiter_init(struct limiter *l);

/* limiter_blocked() - For how many more nanoseconds @net is blocked; 0: it is not. */
uint64_t limiter_blocked(struct limiter *l, const char *net, uint64_t now_ns);

/* limiter_fail() - A wrong token. Return: true when this begins a burst, to log it once. */
bool limiter_fail(struct limiter *l, const char *net, uint64_t now_ns);

#endif
