/* SPDX-License-Identifier: Apache-2.0 */
/*
 * address.h - Which addresses the gate may connect to. Pure, except address_is_ours().
 *
 * An allowed name may still resolve to a neighbour, to this machine or to a cloud's metadata
 * service: the owner of the name decides. So the gate judges each address after the name was
 * resolved, in one form (IPv4 as mapped in IPv6). An IPv6 address that contains an IPv4 address is
 * judged by that one as well.
 */
#ifndef CAISSON_GATE_ADDRESS_H
#define CAISSON_GATE_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/addr.h"

#define ADDRESS_TEXT 46

/*
 * address_refusal() - Why @a may not be connected to; NULL: it may.
 * @allowed: private ranges that the operator allows. Link-local addresses, multicast and the
 * metadata services of clouds stay forbidden.
 */
const char *address_refusal(const struct in6_addr *a, const struct prefix *allowed, size_t n);

/* address_is_allowed() - Whether @a is in one of the ranges. */
bool address_is_allowed(const struct in6_addr *a, const struct prefix *allowed, size_t n);

/*
 * address_is_ours() - Whether a packet to @a would stay on this machine. Asks the Linux kernel
 * without sending one: the source would be the same address.
 */
bool address_is_ours(const struct in6_addr *a);

/* address_of() - From a socket's address; IPv4 becomes mapped. False: another family. */
struct sockaddr;
bool address_of(const struct sockaddr *from, struct in6_addr *ret);
/* address_to() - For connect(). Return: its length. */
socklen_t address_to(const struct in6_addr *a, uint16_t port, struct sockaddr_storage *ret);
void address_text(const struct in6_addr *a, char ret[ADDRESS_TEXT]);

#endif
