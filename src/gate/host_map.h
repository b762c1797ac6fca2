/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_map.h - The names that a sandbox may reach, and the address that stands for each in its
 * cell.
 *
 * A name gets its address with the first DNS query for it, and keeps it as long as the sandbox
 * lives, also when the rules change: a connection is judged by name, port and the present rules.
 * Pure except for memory; no name is looked up here.
 */
#ifndef CAISSON_GATE_HOST_MAP_H
#define CAISSON_GATE_HOST_MAP_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/gate.h"

struct host_map {
	struct gate_rule *rules;
	size_t n_rules;
	char **hosts; /* by index */
	size_t n_hosts;
};

/*
 * host_map_set() - Copies @rules. -EINVAL: a host is not canonical (lower-case LDH labels and '_',
 * 1 to 253 bytes, no trailing dot, no IP literal), or another text is wrong; nothing has changed
 * then.
 */
int host_map_set(struct host_map *n, const struct gate_rule *rules, size_t n_rules);
void host_map_free(struct host_map *n);

/* host_map_allows() - Whether a rule allows @host; @port 0: on any port. */
bool host_map_allows(const struct host_map *n, const char *host, uint16_t port);

/*
 * host_map_index() - The number of an allowed name, from 0; a new name gets the next one.
 * Return: -ENOENT when no rule allows it, -ENOSPC when there are too many, -ENOMEM.
 */
int host_map_index(struct host_map *n, const char *host);

void host_map_address4(size_t index, struct in_addr *ret);
void host_map_address6(size_t index, struct in6_addr *ret);

/* host_map_host() - The name that an address stands for; IPv4 as mapped in IPv6. NULL: none. */
const char *host_map_host(const struct host_map *n, const struct in6_addr *local);

#endif
