/* SPDX-License-Identifier: Apache-2.0 */
/*
 * port_admit.h - Who may go through a port, and which one is meant.
 *
 * Three ways in: the port's token in the path (/ports/8000~TOKEN/...: the URL that opening a port
 * gives), the token in X-Caisson-Port-Token, or being the sandbox's owner, by the daemon's own
 * rules (auth.h). The first is for browsers. Cookies would not do: a page of the service is shown
 * without an origin (SECURITY.md), from where cookies of this host are either not sent, or, if they
 * were allowed to be, are sent by every other site's pages as well. A path goes with every relative
 * link, script and WebSocket of the page, and with nothing else. What it gives away is that port of
 * that sandbox, and the page is the one it belongs to.
 */
#ifndef CAISSON_FRONT_PORT_ADMIT_H
#define CAISSON_FRONT_PORT_ADMIT_H

#include <stdbool.h>

struct front;
struct http_exchange;
struct request_context;

/* port_admit() - Answers, unless all is well; then the request context knows its owner, and its
 * work is the port. */
bool port_admit(struct front *f, struct http_exchange *x, struct request_context *v);

#endif
