/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index_hosts.h - The hosts of the package indexes in the daemon's settings. Pure. The gate gets
 * them when it starts, and fetchers may reach only them.
 */
#ifndef CAISSON_FRONT_GATE_INDEX_HOSTS_H
#define CAISSON_FRONT_GATE_INDEX_HOSTS_H

#include <jansson.h>
#include <stdbool.h>

#include "vault/index.h"

struct config;
struct err;

/* index_of() - The index of one kind of package. False: the settings name none. */
bool index_of(const struct config *c, enum index_kind kind, struct index_url *ret);
/* index_hosts_add() - The hosts of @u as entries of `egress`. @looked: the gate checks requests to
 * it. */
void index_hosts_add(json_t *list, const struct config *c, const struct index_url *u, bool looked);
/* index_hosts() - Every host that fetchers may reach, as canonical entries; NULL: none, or
 * an error in @e. */
json_t *index_hosts(const struct config *c, struct err *e);
/* index_server() - The server of a host of that list, if it is an address or localhost; otherwise
 * NULL. */
const char *index_server(const struct config *c, const char *host);

#endif
