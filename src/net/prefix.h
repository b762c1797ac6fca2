/* SPDX-License-Identifier: Apache-2.0 */
/* prefix.h - Ranges of addresses in one form: IPv4 as mapped in IPv6. Pure. */
#ifndef CAISSON_NET_PREFIX_H
#define CAISSON_NET_PREFIX_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

struct prefix {
	struct in6_addr net;
	uint8_t bits; /* of the 128 */
};

/* prefix_parse() - "10.1.0.0/16", "fd12::/32", "127.0.0.1". False: not a range, or bits after the
 * prefix are set. */
bool prefix_parse(const char *text, struct prefix *ret);
bool prefix_holds(const struct in6_addr *a, const struct prefix *p);

/* prefix_map4() - @v4: four bytes in network order. */
void prefix_map4(const void *v4, struct in6_addr *ret);

#endif
