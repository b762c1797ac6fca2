/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ports.h - The ports of a sandbox that are open to the outside, each with a token of its own.
 *
 * A port is open from the owner's asking until he closes it, or until the sandbox does not run any
 * more; that the cell is another one by then makes no difference. It lives in memory alone: a
 * daemon that begins anew has no open ports.
 */
#ifndef CAISSON_FRONT_PORTS_H
#define CAISSON_FRONT_PORTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "front/ports/port_head.h"

struct front;
struct json;
struct port_proxy;
struct refusal;
struct sandbox;

#define PORTS_MAX 32u /* open in one sandbox */
#define PORT_REQUESTS_MAX                                                                          \
	64u /* requests and connections at a time, through all ports of one sandbox */

struct port {
	struct sandbox *sandbox;
	struct port *next;
	unsigned int number;
	char token[PORT_TOKEN_LEN + 1];
	struct port_proxy *proxied;        /* requests that go through it now */
	void (*cut)(struct port_proxy *p); /* end one of them, which then is in the list no more */
	size_t n_proxied;
	uint64_t requests, opened_ms;
};

/* port_open() - The same one when it is open already. NULL with @why. @ret_made: it was not. */
struct port *port_open(struct sandbox *s, unsigned int number, bool *ret_made, struct refusal *why);
struct port *port_find(const struct sandbox *s, unsigned int number);

/* port_by_token() - Whosoever sandbox of that name it is. Compares in constant time. */
struct port *port_by_token(const struct front *f, const char *sandbox, unsigned int number,
			   const char *token);

/* port_close() - What goes through it is cut off. */
void port_close(struct port *p, const char *why);
void ports_close(struct sandbox *s, const char *why); /* all of them */

/* port_requests() - Through all ports of a sandbox, now. */
size_t port_requests(const struct sandbox *s);

/* port_json() - @base: scheme and host by which the client reaches us, or "". */
void port_json(const struct port *p, const char *base, struct json *j);

#endif
