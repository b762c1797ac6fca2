/* SPDX-License-Identifier: Apache-2.0 */
/*
 * egress_pattern.h - Patterns of the policy for names that sandboxes may reach, compared with
 * entries of `egress`. Pure.
 *
 *   api.example.com        that name; ports 80 and 443, as in an entry
 *   *.example.org          every name below it
 *   *                      every name
 *   git.example.net:22     that port; :* is any
 */
#ifndef CAISSON_FRONT_POLICY_EGRESS_PATTERN_H
#define CAISSON_FRONT_POLICY_EGRESS_PATTERN_H

#include <stdbool.h>

#include "front/policy/egress_entry.h"

struct egress_pattern {
	struct egress_entry entry; /* host and wild, unless any_host; port, unless any_port */
	bool any_host, any_port;
};

/* egress_pattern_parse() - False: it is not a pattern. */
bool egress_pattern_parse(const char *pattern, struct egress_pattern *ret);

/* egress_pattern_covers() - Whether the pattern has every name and port of the entry. */
bool egress_pattern_covers(const struct egress_pattern *p, const struct egress_entry *n);

/*
 * egress_pattern_touches() - Whether the pattern has any name and port of the entry. Here a pattern
 * without a port stands for all ports: a rule that denies a name denies all of it.
 */
bool egress_pattern_touches(const struct egress_pattern *p, const struct egress_entry *n);

#endif
