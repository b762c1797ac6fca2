/* SPDX-License-Identifier: Apache-2.0 */
/*
 * address.h - Which addresses outside may be connected to. Pure, but for address_is_ours().
 *
 * A name that is allowed may still lead to a neighbour, to this machine or to a cloud's metadata:
 * whoever owns the name decides what it resolves to. So an address is judged after the name was
 * resolved, in one form (IPv4 as mapped in IPv6), with the forms in which IPv6 carries an IPv4
 * address judged by that one as well.
 */
#ifndef CAISSON_GATE_ADDRESS_H
#define CAISSON_GATE_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/prefix.h"

#define ADDRESS_TEXT 46

/*
 * address_refusal() - Why @a may not be connected to; NULL: it may.
 * @allowed: private ranges that the operator lets through. They do not help against link-local
 * addresses, multicast and the metadata services of clouds.
 */
const char *address_refusal(const struct in6_addr *a, const struct prefix *allowed, size_t n);

/* address_is_allowed() - Whether it is in one of them. */
bool address_is_allowed(const struct in6_addr *a, const struct prefix *allowed, size_t n);

/*
 * address_is_ours() - Whether what is sent to @a would stay on this machine, asked of the kernel
 * without a packet: then the source would be the same address.
 */
bool address_is_ours(const struct in6_addr *a);

/* address_of() - From a socket's address; IPv4 becomes mapped. False: of another family. */
struct sockaddr;
bool address_of(const struct sockaddr *from, struct in6_addr *ret);
/* address_to() - For connect(); its length. */
socklen_t address_to(const struct in6_addr *a, uint16_t port, struct sockaddr_storage *ret);
void address_text(const struct in6_addr *a, char ret[ADDRESS_TEXT]);

#endif
