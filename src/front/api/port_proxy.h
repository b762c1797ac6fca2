/* SPDX-License-Identifier: Apache-2.0 */
/*
 * port_proxy.h - One request that goes through a port to a service in a sandbox, and its answer;
 * or, after the service agreed to another protocol, the two connections as one.
 */
#ifndef CAISSON_FRONT_PORT_PROXY_H
#define CAISSON_FRONT_PORT_PROXY_H

struct http_exchange;
struct port;
struct port_way;
struct services;

/* port_proxy_begin() - Pass the request on; to be called from inside on_head. Answers @x in every
 * case, now or later, and frees itself. */
void port_proxy_begin(struct services *services, struct port *port, struct http_exchange *x,
		      const struct port_way *way);

#endif
