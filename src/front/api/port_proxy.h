/* SPDX-License-Identifier: Apache-2.0 */
/*
 * port_proxy.h - One request that goes through a port to a service in a sandbox, and its answer;
 * or, after the service agreed to another protocol, the two connections as one.
 *
 * Life: port_proxy_begin() -> waiting for a cell -> connecting -> asking -> answering, or switched
 * -> over. It frees itself. Bytes are passed on as they come, both ways; whoever is slow makes the
 * other one wait, so memory is bounded by the queues of the two connections.
 */
#ifndef CAISSON_FRONT_PORT_PROXY_H
#define CAISSON_FRONT_PORT_PROXY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "front/cell/cell.h"
#include "front/ports/port_head.h"
#include "front/sandbox/sandbox.h"
#include "net/answer.h"
#include "net/loop.h"
#include "net/uplink.h"

struct conn;
struct front;
struct http_exchange;
struct port;

struct port_proxy {
	struct front *f;
	struct port *port;
	struct port_proxy *prev, *next; /* in the port's list */
	struct http_exchange *x;        /* NULL: answered, gone, or switched */
	struct conn *conn;              /* switched: the client's */
	struct port_way way;
	struct buf head; /* for the service, until it is connected */
	struct entry entry;
	struct cell *cell; /* NULL: not inside */
	struct cell_command job;
	uint32_t family;
	struct uplink up;
	struct answer answer;
	bool chunked;   /* the body of the request */
	bool body_over; /* all of it has come */
	bool answering; /* the answer's head is out */
	bool over;
	uint64_t left; /* of an answer with a length: what may still come */
	uint64_t moved_ns;
	struct timer timer;
	struct deferred reaper;
};

/* port_proxy_begin() - From inside on_head. Answers @x in every case, sooner or later. */
void port_proxy_begin(struct port *port, struct http_exchange *x, const struct port_way *way);

/* port_proxy_cut() - The port was closed. */
void port_proxy_cut(struct port_proxy *p);

/* port_proxy_fail() - Say it to the client as far as that is still possible, and be over. */
void port_proxy_fail(struct port_proxy *p, int status, const char *code, const char *hint,
		     const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* port_proxy_end() - Let go of everything but the exchange and the connection. Idempotent. */
void port_proxy_end(struct port_proxy *p);
/* port_proxy_part() - The exchange, which is the caller's now: nothing of us hears of it. NULL: it
 * is gone. */
struct http_exchange *port_proxy_part(struct port_proxy *p);

/* port_proxy_part_conn() - The client's connection in the same way: it writes out what it has, and
 * ends alone. */
struct conn *port_proxy_part_conn(struct port_proxy *p);

/* port_proxy_add_headers() - Those of the answer that are for the client. */
void port_proxy_add_headers(struct port_proxy *p);

/* port_proxy_switch() - tunnel.c: the service said 101; @early: what it said behind that. */
void port_proxy_switch(struct port_proxy *p, const char *early, size_t len);
/* port_proxy_join() - tunnel.c: say 101 to the client; from then on the two connections are one. */
void port_proxy_join(struct port_proxy *p, const char *protocol, const char *early, size_t len);

#endif
