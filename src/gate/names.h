/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.h - Which names a sandbox may reach, and the address that stands for each in its cell.
 *
 * An address is given to a name when it is first asked for, and means that name as long as the
 * sandbox lives, also when the rules change: a connection is judged by name, port and the rules of
 * its moment. Pure but for memory; no name is ever looked up here.
 */
#ifndef CAISSON_GATE_NAMES_H
#define CAISSON_GATE_NAMES_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/gate.h"

struct names {
	struct gate_rule *rules;
	size_t n_rules;
	char **hosts; /* by index */
	size_t n_hosts;
};

/* names_canonical() - Lower-case LDH labels (and '_'), 1 to 253 bytes, no trailing dot, no IP
 * literal. */
bool names_canonical(const char *host);

/* names_set() - Copies @rules. -EINVAL: one of them is not canonical, and nothing has changed. */
int names_set(struct names *n, const struct gate_rule *rules, size_t n_rules);
void names_free(struct names *n);

/* names_allow() - Whether @host may be reached; @port 0: on any port. */
bool names_allow(const struct names *n, const char *host, uint16_t port);

/*
 * names_index() - The number of an allowed name, from 0; a new one when it has none.
 * Return: -ENOENT when no rule allows it, -ENOSPC when there are too many, -ENOMEM.
 */
int names_index(struct names *n, const char *host);

void names_address4(size_t index, struct in_addr *ret);
void names_address6(size_t index, struct in6_addr *ret);

/* names_host() - The name whose address a connection was made to; v4 also as mapped in v6. NULL:
 * nobody's. */
const char *names_host(const struct names *n, const struct in6_addr *local);

#endif
