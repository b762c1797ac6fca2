/* SPDX-License-Identifier: Apache-2.0 */
/*
 * port_admit.h - Admit a request to an open port.
 *
 * There are three credentials: the port's token in the path (/ports/8000~TOKEN/...: the URL that
 * opening a port returns), the token in X-Caisson-Port-Token, or those of the sandbox's owner, by
 * the daemon's own rules (auth.h). The first is for browsers. Cookies do not fit: a page of the
 * service has an opaque origin (SECURITY.md), from which browsers either do not send cookies of
 * this host, or, if that were allowed, send them from every other site's pages as well. A path goes
 * with every relative link, script and WebSocket of the page, and with nothing else. It gives
 * access to that port of that sandbox alone, to which the page belongs.
 */
#ifndef CAISSON_FRONT_PORT_ADMIT_H
#define CAISSON_FRONT_PORT_ADMIT_H

#include <stdbool.h>

struct http_exchange;
struct request_context;
struct services;

/* port_admit() - True: the request context has the owner, and its work is the port. False: the
 * request is answered. */
bool port_admit(struct services *services, struct http_exchange *x, struct request_context *v);

#endif
