/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reach.h - Patterns of the policy for what sandboxes may reach, held against entries of their
 * `egress`. Pure.
 *
 *   api.example.com        that name; ports 80 and 443, as in an entry
 *   *.example.org          every name below it
 *   *                      every name
 *   git.example.net:22     that port; :* is any
 */
#ifndef CAISSON_FRONT_POLICY_REACH_H
#define CAISSON_FRONT_POLICY_REACH_H

#include <stdbool.h>

#include "front/policy/egress_entry.h"

struct reach {
	struct egress_entry entry; /* host and wild, unless any_host; port, unless any_port */
	bool any_host, any_port;
};

bool reach_parse(const char *pattern, struct reach *ret);

/* reach_covers() - Whether all that the entry lets through is within the pattern. */
bool reach_covers(const struct reach *p, const struct egress_entry *n);

/*
 * reach_touches() - Whether the entry lets anything through that the pattern has. Here a pattern
 * without a port has all of them: whoever denies a name does not mean two of its ports.
 */
bool reach_touches(const struct reach *p, const struct egress_entry *n);

#endif
