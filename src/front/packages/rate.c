/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rate.c - How often an owner has something fetched.
 *
 * A table of fixed size, by a hash of the owner: where it is full the one that began longest ago is
 * forgotten, which gives somebody more than he should have, and never less.
 */
#include "base/clock.h"
#include "front/packages/install_int.h"
#include "front/packages/packages.h"
#include "front/support/front.h"

#define HOUR_NS (3600 * CLOCK_NS_PER_S)

static uint64_t hash_owner(const char *owner)
{
	uint64_t h = 1469598103934665603u;

	for (; *owner; owner++)
		h = (h ^ (unsigned char)*owner) * 1099511628211u;
	return h | 1;
}

int rate_take(struct front *f, const char *owner, struct refusal *why)
{
	uint64_t key = hash_owner(owner), now = f->loop.now_ns;
	struct package_rate *r = NULL, *oldest = &f->packages->rates[0];

	for (size_t i = 0; i < PACKAGES_RATES; i++) {
		struct package_rate *at = &f->packages->rates[i];

		if (at->owner == key)
			r = at;
		if (at->since_ns < oldest->since_ns)
			oldest = at;
	}
	if (!r || now > r->since_ns + HOUR_NS) {
		r = r ? r : oldest;
		*r = (struct package_rate){ .owner = key, .since_ns = now };
	}
	if (r->n >= f->config.package_rate) {
		(void)install_refuse(why, 429, "package_rate",
				     "the operator's limit: --package-rate",
				     "too many packages were fetched for you in this hour");
		why->retry_after_s =
			(unsigned int)((r->since_ns + HOUR_NS - now) / CLOCK_NS_PER_S) + 1;
		return -1;
	}
	r->n++;
	return 0;
}
