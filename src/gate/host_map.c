/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_map.c - The names that a sandbox may reach, and the address that stands for each in its
 * cell.
 *
 * A name gets its address with the first DNS query for it, and keeps it as long as the sandbox
 * lives, also when the rules change: a connection is judged by name, port and the present rules.
 * Pure except for memory; no name is looked up here.
 */
#include "gate/gate_sandbox.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "gate/http_rule.h"

#define LABEL_MAX 63

static const struct in6_addr net6 = { .s6_addr = GATE_NET6 };

static bool is_label_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static bool is_canonical(const char *host)
{
	size_t label = 0, len = 0;
	bool numeric = true; /* the last label; no top-level domain is a number */

	for (; host[len]; len++) {
		if (len >= GATE_HOST_MAX - 1)
			return false;
		if (host[len] == '.') {
			if (label == 0)
				return false;
			label = 0;
			numeric = true;
			continue;
		}
		if (!is_label_byte(host[len]) || ++label > LABEL_MAX)
			return false;
		numeric = numeric && host[len] >= '0' && host[len] <= '9';
	}
	return label > 0 && !numeric;
}

int host_map_set(struct host_map *n, const struct gate_rule *rules, size_t n_rules)
{
	struct gate_rule *copy = NULL;

	for (size_t i = 0; i < n_rules; i++)
		/* First of all: a string in a fixed array may lack its NUL. */
		if (!http_rule_good(&rules[i]) || !is_canonical(rules[i].host) ||
		    rules[i].port == 0)
			return -EINVAL;
	if (n_rules > 0) {
		copy = calloc(n_rules, sizeof(*copy));
		if (!copy)
			return -ENOMEM;
		memcpy(copy, rules, n_rules * sizeof(*copy));
	}
	free(n->rules);
	n->rules = copy;
	n->n_rules = n_rules;
	return 0;
}

void host_map_free(struct host_map *n)
{
	for (size_t i = 0; i < n->n_hosts; i++)
		free(n->hosts[i]);
	free(n->hosts);
	free(n->rules);
	*n = (struct host_map){ 0 };
}

bool host_map_allows(const struct host_map *n, const char *host, uint16_t port)
{
	for (size_t i = 0; i < n->n_rules; i++)
		if (rule_covers(&n->rules[i], host, port))
			return true;
	return false;
}

int host_map_index(struct host_map *n, const char *host)
{
	if (!host_map_allows(n, host, 0))
		return -ENOENT;
	for (size_t i = 0; i < n->n_hosts; i++)
		if (strcmp(n->hosts[i], host) == 0)
			return (int)i;
	if (n->n_hosts >= GATE_NAMES_MAX)
		return -ENOSPC;
	if (mem_grow(&n->hosts, &n->cap_hosts, n->n_hosts + 1, sizeof(*n->hosts)) < 0)
		return -ENOMEM;
	n->hosts[n->n_hosts] = strdup(host);
	return n->hosts[n->n_hosts] ? (int)n->n_hosts++ : -ENOMEM;
}

void host_map_address4(size_t index, struct in_addr *ret)
{
	ret->s_addr = htonl(GATE_NET4 + GATE_FIRST + (uint32_t)index);
}

void host_map_address6(size_t index, struct in6_addr *ret)
{
	uint32_t low = htonl(GATE_FIRST + (uint32_t)index);

	*ret = net6;
	memcpy(&ret->s6_addr[12], &low, sizeof(low));
}

const char *host_map_host(const struct host_map *n, const struct in6_addr *local)
{
	uint32_t low;

	memcpy(&low, &local->s6_addr[12], sizeof(low));
	low = ntohl(low);
	if (IN6_IS_ADDR_V4MAPPED(local)) {
		if (low >> (32 - GATE_NET4_BITS) != GATE_NET4 >> (32 - GATE_NET4_BITS))
			return NULL;
		low -= GATE_NET4;
	} else {
		if (memcmp(local, &net6, 12) != 0)
			return NULL;
	}
	return low >= GATE_FIRST && low - GATE_FIRST < n->n_hosts ? n->hosts[low - GATE_FIRST] :
								    NULL;
}
