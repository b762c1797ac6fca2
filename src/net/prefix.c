/* SPDX-License-Identifier: Apache-2.0 */
/* prefix.c - Ranges of addresses, parsed and matched. See prefix.h. */
#include "net/prefix.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

void prefix_map4(const void *v4, struct in6_addr *ret)
{
	*ret = (struct in6_addr){ .s6_addr = { [10] = 0xff, [11] = 0xff } };
	memcpy(&ret->s6_addr[12], v4, 4);
}

bool prefix_parse(const char *text, struct prefix *ret)
{
	const char *slash = strchr(text, '/');
	char net[INET6_ADDRSTRLEN];
	size_t len = slash ? (size_t)(slash - text) : strlen(text);
	unsigned char v4[4];
	unsigned long bits = 128, most = 128;
	char *end = NULL;

	if (len == 0 || len >= sizeof(net))
		return false;
	memcpy(net, text, len);
	net[len] = '\0';
	if (inet_pton(AF_INET, net, v4) == 1) {
		prefix_map4(v4, &ret->net);
		most = 32;
	} else if (inet_pton(AF_INET6, net, &ret->net) != 1) {
		return false;
	}
	if (slash) {
		if (slash[1] < '0' || slash[1] > '9')
			return false;
		bits = strtoul(slash + 1, &end, 10);
		if (*end || bits > most)
			return false;
		bits += 128 - most;
	}
	ret->bits = (uint8_t)bits;
	for (unsigned int i = ret->bits; i < 128; i++)
		if (ret->net.s6_addr[i / 8] & 0x80u >> i % 8)
			return false;
	return true;
}

bool prefix_holds(const struct in6_addr *a, const struct prefix *p)
{
	unsigned int whole = p->bits / 8, rest = p->bits % 8;

	if (memcmp(a->s6_addr, p->net.s6_addr, whole) != 0)
		return false;
	if (rest == 0)
		return true;
	return (a->s6_addr[whole] ^ p->net.s6_addr[whole]) >> (8 - rest) == 0;
}
