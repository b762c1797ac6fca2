/* SPDX-License-Identifier: Apache-2.0 */
/* addr.h - Addresses of sockets, as text and as structs. */
#ifndef CAISSON_NET_ADDR_H
#define CAISSON_NET_ADDR_H

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

#endif
