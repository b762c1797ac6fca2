/* SPDX-License-Identifier: Apache-2.0 */
/* limiter.c - Slow down clients that guess tokens; see limiter.h. */
#include "front/http/limiter.h"

#include <stddef.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"

#define FAILURES_MAX 10
#define WINDOW_NS (10 * CLOCK_NS_PER_S)
#define FORGET_NS (60 * CLOCK_NS_PER_S)
#define PENALTY_MAX_S 60u

void limiter_init(struct limiter *l)
{
	memset(l, 0, sizeof(*l));
	/* Sixteen bytes are never cut short; without them the table still works. */
	(void)!getrandom(l->seed, sizeof(l->seed), 0);
}

static uint64_t mix(uint64_t h)
{
	h ^= h >> 33;
	h *= UINT64_C(0xff51afd7ed558ccd);
	h ^= h >> 33;
	h *= UINT64_C(0xc4ceb9fe1a85ec53);
	return h ^ h >> 33;
}

/* A number for an address, never 0. Two that share one are blocked together: one in 2^64. */
static uint64_t key_of(const struct limiter *l, const char *net)
{
	uint64_t h = l->seed[0];

	for (; *net; net++)
		h = mix(h ^ (unsigned char)*net);
	h = mix(h ^ l->seed[1]);
	return h ? h : 1;
}

/* The entry of @key; with @make, one that is free or has to go. */
static struct limiter_entry *find(struct limiter *l, uint64_t key, bool make)
{
	struct limiter_entry *row = l->entries[key % LIMITER_ROWS], *oldest = row;

	for (size_t i = 0; i < LIMITER_WAYS; i++) {
		if (row[i].key == key)
			return &row[i];
		if (row[i].last_ns < oldest->last_ns)
			oldest = &row[i];
	}
	if (!make)
		return NULL;
	*oldest = (struct limiter_entry){ .key = key };
	return oldest;
}

uint64_t limiter_blocked(struct limiter *l, const char *net, uint64_t now_ns)
{
	const struct limiter_entry *x = find(l, key_of(l, net), false);

	return x && x->until_ns > now_ns ? x->until_ns - now_ns : 0;
}

bool limiter_fail(struct limiter *l, const char *net, uint64_t now_ns)
{
	struct limiter_entry *x = find(l, key_of(l, net), true);
	uint64_t quiet_from = x->until_ns > x->last_ns ? x->until_ns : x->last_ns;

	if (now_ns > quiet_from && now_ns - quiet_from > FORGET_NS)
		*x = (struct limiter_entry){ .key = x->key };
	if (x->failures == 0 || now_ns - x->window_ns > WINDOW_NS) {
		x->window_ns = now_ns;
		x->failures = 0;
	}
	x->last_ns = now_ns;
	x->failures++;
	if (x->penalty_s == 0 && x->failures < FAILURES_MAX)
		return false;

	bool first = x->penalty_s == 0;

	x->penalty_s = first ? 1 : x->penalty_s * 2;
	if (x->penalty_s > PENALTY_MAX_S)
		x->penalty_s = PENALTY_MAX_S;
	x->until_ns = now_ns + x->penalty_s * CLOCK_NS_PER_S;
	return first;
}
