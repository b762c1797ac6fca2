/* SPDX-License-Identifier: Apache-2.0 */
/* address.c - Tables of addresses that a cell must not reach, and conversions. See address.h. */
#include "gate/address.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"

struct range {
	const char *net;
	const char *why;
};

/* Never, not even by --egress-private: services there give credentials to every client. */
static const struct range never[] = {
	{ "169.254.0.0/16", "a link-local address" }, /* 169.254.169.254: metadata of most clouds */
	{ "100.100.100.200", "a metadata service" },  { "168.63.129.16", "a metadata service" },
	{ "192.0.0.192", "a metadata service" },      { "fd00:ec2::254", "a metadata service" },
	{ "fd20:ce::254", "a metadata service" },     { "fe80::/10", "a link-local address" },
	{ "224.0.0.0/4", "a multicast address" },     { "255.255.255.255", "a broadcast address" },
	{ "ff00::/8", "a multicast address" },        { "0.0.0.0/8", "not the address of a host" },
	{ "::", "not the address of a host" },
};

static const struct range private_ranges[] = {
	{ "127.0.0.0/8", "a loopback address" },
	{ "::1", "a loopback address" },
	{ "10.0.0.0/8", "a private address" },
	{ "172.16.0.0/12", "a private address" },
	{ "192.168.0.0/16", "a private address" },
	{ "100.64.0.0/10", "an address of a provider's own network" },
	{ "fc00::/7", "a private address" },
	{ "fec0::/10", "a private address" },
	{ "192.0.0.0/24", "a reserved address" },
	{ "192.0.2.0/24", "a reserved address" },
	{ "192.88.99.0/24", "a reserved address" },
	{ "198.18.0.0/15", "a reserved address" },
	{ "198.51.100.0/24", "a reserved address" },
	{ "203.0.113.0/24", "a reserved address" },
	{ "240.0.0.0/4", "a reserved address" },
	{ "2001::/23", "a reserved address" }, /* Teredo, benchmarking, ORCHID */
	{ "2001:db8::/32", "a reserved address" },
	{ "3fff::/20", "a reserved address" },
};

/* Ranges of IPv6 that contain an IPv4 address, and its first byte. */
static const struct {
	const char *net;
	unsigned int at;
} carriers[] = {
	{ "64:ff9b::/96", 12 }, /* NAT64 */
	{ "2002::/16", 2 },     /* 6to4 */
};

bool address_is_allowed(const struct in6_addr *a, const struct prefix *allowed, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (prefix_holds(a, &allowed[i]))
			return true;
	return false;
}

static const char *find_range(const struct in6_addr *a, const struct range *table, size_t n)
{
	struct prefix p;

	for (size_t i = 0; i < n; i++)
		if (prefix_parse(table[i].net, &p) && prefix_holds(a, &p))
			return table[i].why;
	return NULL;
}

/* In IPv6 only 2000::/3 has been assigned. */
static bool is_global(const struct in6_addr *a)
{
	return IN6_IS_ADDR_V4MAPPED(a) || (a->s6_addr[0] & 0xe0) == 0x20;
}

const char *address_refusal(const struct in6_addr *a, const struct prefix *allowed, size_t n)
{
	const char *why = find_range(a, never, ARRAY_SIZE(never));
	struct prefix p;

	for (size_t i = 0; !why && i < ARRAY_SIZE(carriers); i++)
		if (prefix_parse(carriers[i].net, &p) && prefix_holds(a, &p)) {
			struct in6_addr inner;

			prefix_map4(&a->s6_addr[carriers[i].at], &inner);
			return address_refusal(&inner, allowed, n);
		}
	if (why || address_is_allowed(a, allowed, n))
		return why;
	why = find_range(a, private_ranges, ARRAY_SIZE(private_ranges));
	return why || is_global(a) ? why : "a reserved address";
}

bool address_of(const struct sockaddr *from, struct in6_addr *ret)
{
	if (from->sa_family == AF_INET6) {
		struct sockaddr_in6 v6;

		memcpy(&v6, from, sizeof(v6));
		*ret = v6.sin6_addr;
		return true;
	}
	if (from->sa_family == AF_INET) {
		struct sockaddr_in v4;

		memcpy(&v4, from, sizeof(v4));
		prefix_map4(&v4.sin_addr, ret);
		return true;
	}
	return false;
}

socklen_t address_to(const struct in6_addr *a, uint16_t port, struct sockaddr_storage *ret)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6,
				   .sin6_port = htons(port),
				   .sin6_addr = *a };

	memset(ret, 0, sizeof(*ret));
	if (IN6_IS_ADDR_V4MAPPED(a)) {
		memcpy(&v4.sin_addr, &a->s6_addr[12], 4);
		memcpy(ret, &v4, sizeof(v4));
		return sizeof(v4);
	}
	memcpy(ret, &v6, sizeof(v6));
	return sizeof(v6);
}

void address_text(const struct in6_addr *a, char ret[ADDRESS_TEXT])
{
	bool v4 = IN6_IS_ADDR_V4MAPPED(a);

	if (!inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? &a->s6_addr[12] : a->s6_addr, ret,
		       ADDRESS_TEXT))
		ret[0] = '\0';
}

bool address_is_ours(const struct in6_addr *a)
{
	struct sockaddr_storage to, from = { 0 };
	socklen_t len = address_to(a, 9, &to), got = sizeof(from);
	struct in6_addr source;
	_fd_ int fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (const struct sockaddr *)&to, len) < 0 ||
	    getsockname(fd, (struct sockaddr *)&from, &got) < 0)
		return false; /* no route: the connection will fail */
	return address_of((const struct sockaddr *)&from, &source) &&
	       memcmp(&source, a, sizeof(source)) == 0;
}
