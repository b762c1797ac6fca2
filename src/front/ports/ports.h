/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ports.h - The ports of a sandbox that are open to the outside, each with a token of its own.
 *
 * A port is open until its owner closes it or the sandbox stops; it stays open when the sandbox
 * gets a new cell. Ports are only in memory: a daemon that is restarted has no open ports.
 */
#ifndef CAISSON_FRONT_PORTS_H
#define CAISSON_FRONT_PORTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "front/ports/port_head.h"

struct json;
struct port_proxy;
struct refusal;
struct sandbox;
struct sandboxes;

#define PORTS_MAX 32u         /* open in one sandbox */
#define PORT_REQUESTS_MAX 64u /* at a time, through all ports of one sandbox */

struct port {
	struct sandbox *sandbox;
	struct port *next;
	unsigned int number;
	char token[PORT_TOKEN_LEN + 1];
	struct port_proxy *proxied;        /* requests that go through it now */
	void (*cut)(struct port_proxy *p); /* end one of them, and remove it from the list */
	size_t n_proxied;
	uint64_t requests, opened_ms;
};

/* port_open() - Returns the port that is open already, if any. NULL with @why. @ret_made: it is
 * new. */
struct port *port_open(struct sandbox *s, unsigned int number, bool *ret_made, struct refusal *why);
struct port *port_find(const struct sandbox *s, unsigned int number);

/* port_by_token() - Of any owner's sandbox of that name. Compares in constant time. */
struct port *port_by_token(const struct sandboxes *sandboxes, const char *sandbox,
			   unsigned int number, const char *token);

/* port_close() - Requests that go through it are cut off. */
void port_close(struct port *p, const char *why);
void ports_close(struct sandbox *s, const char *why); /* all of them */

/* port_requests() - Through all ports of a sandbox, now. */
size_t port_requests(const struct sandbox *s);

/* port_json() - @base: scheme and host by which the client reaches the daemon, or "". */
void port_json(const struct port *p, const char *base, struct json *j);

#endif
