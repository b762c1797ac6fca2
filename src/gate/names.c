/* SPDX-License-Identifier: Apache-2.0 */
/* names.c - Rules and addresses of one sandbox. */
#include "gate/names.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gate/http_rule.h"

#define LABEL_MAX 63

static bool is_label_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

bool names_canonical(const char *host)
{
	size_t label = 0, len = 0;
	bool numeric = true; /* the last label: no top-level domain is a number */

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

/* A string of a fixed array may lack its end. */
static bool is_rule(const struct gate_rule *r)
{
	return memchr(r->host, '\0', sizeof(r->host)) && names_canonical(r->host) && r->port > 0 &&
	       http_rule_good(r);
}

int names_set(struct names *n, const struct gate_rule *rules, size_t n_rules)
{
	struct gate_rule *copy = NULL;

	for (size_t i = 0; i < n_rules; i++)
		if (!is_rule(&rules[i]))
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

void names_free(struct names *n)
{
	for (size_t i = 0; i < n->n_hosts; i++)
		free(n->hosts[i]);
	free(n->hosts);
	free(n->rules);
	*n = (struct names){ 0 };
}

static bool covers(const struct gate_rule *r, const char *host)
{
	size_t suffix = strlen(r->host), len = strlen(host);

	if (!(r->flags & GATE_WILD))
		return strcmp(r->host, host) == 0;
	return len > suffix + 1 && host[len - suffix - 1] == '.' &&
	       strcmp(host + len - suffix, r->host) == 0;
}

bool names_allow(const struct names *n, const char *host, uint16_t port)
{
	for (size_t i = 0; i < n->n_rules; i++)
		if ((port == 0 || n->rules[i].port == port) && covers(&n->rules[i], host))
			return true;
	return false;
}

int names_index(struct names *n, const char *host)
{
	if (!names_allow(n, host, 0))
		return -ENOENT;
	for (size_t i = 0; i < n->n_hosts; i++)
		if (strcmp(n->hosts[i], host) == 0)
			return (int)i;
	if (n->n_hosts >= GATE_NAMES_MAX)
		return -ENOSPC;
	if (n->n_hosts % 64 == 0) {
		char **larger = realloc(n->hosts, (n->n_hosts + 64) * sizeof(*larger));

		if (!larger)
			return -ENOMEM;
		n->hosts = larger;
	}
	n->hosts[n->n_hosts] = strdup(host);
	return n->hosts[n->n_hosts] ? (int)n->n_hosts++ : -ENOMEM;
}

void names_address4(size_t index, struct in_addr *ret)
{
	ret->s_addr = htonl(GATE_NET4 + GATE_FIRST + (uint32_t)index);
}

void names_address6(size_t index, struct in6_addr *ret)
{
	static const struct in6_addr net = { .s6_addr = GATE_NET6 };
	uint32_t low = htonl(GATE_FIRST + (uint32_t)index);

	*ret = net;
	memcpy(&ret->s6_addr[12], &low, sizeof(low));
}

const char *names_host(const struct names *n, const struct in6_addr *local)
{
	uint32_t low;

	memcpy(&low, &local->s6_addr[12], sizeof(low));
	low = ntohl(low);
	if (IN6_IS_ADDR_V4MAPPED(local)) {
		if (low >> (32 - GATE_NET4_BITS) != GATE_NET4 >> (32 - GATE_NET4_BITS))
			return NULL;
		low -= GATE_NET4;
	} else {
		static const struct in6_addr net = { .s6_addr = GATE_NET6 };

		if (memcmp(local, &net, 12) != 0)
			return NULL;
	}
	return low >= GATE_FIRST && low - GATE_FIRST < n->n_hosts ? n->hosts[low - GATE_FIRST] :
								    NULL;
}
