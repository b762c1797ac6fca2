/* SPDX-License-Identifier: Apache-2.0 */
/* addr.h - Addresses of sockets, as text and as structs, and ranges of them. */
#ifndef CAISSON_NET_ADDR_H
#define CAISSON_NET_ADDR_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct err;
struct peer;

/*
 * addr_parse() - "127.0.0.1:8001" or "[::1]:8001" into @ret. Numeric only: no name is looked up.
 * Port 0 is allowed (the Linux kernel chooses). Pure.
 * Return: the length of the address, or -EINVAL with a message that quotes @text and the remedy.
 */
int addr_parse(const char *text, struct sockaddr_storage *ret, struct err *e);

/* addr_peer() - Fill text, host, net and is_loopback of @ret. IPv4 inside IPv6 becomes IPv4. */
void addr_peer(const struct sockaddr_storage *from, struct peer *ret);

/* A range of addresses in one form: IPv4 as mapped in IPv6. The functions are pure. */
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
