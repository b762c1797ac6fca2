/* SPDX-License-Identifier: Apache-2.0 */
/*
 * passage.h - One request that goes through a port to a service in a sandbox, and its answer; or, after the
 * service agreed to another protocol, the two connections as one.
 *
 * Life: passage_begin() -> waiting for a cell -> connecting -> asking -> answering, or switched -> over. It
 * frees itself. Bytes are passed on as they come, both ways; whoever is slow makes the other one wait, so
 * memory is bounded by the queues of the two connections.
 */
#ifndef CAISSON_FRONT_PASSAGE_H
#define CAISSON_FRONT_PASSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "front/ports/port_head.h"
#include "front/room/room.h"
#include "front/sandbox/sandbox.h"
#include "net/answer.h"
#include "net/loop.h"
#include "net/uplink.h"

struct conn;
struct front;
struct http_exchange;
struct port;

struct passage {
	struct front *f;
	struct port *port;
	struct passage *prev, *next; /* in the port's list */
	struct http_exchange *x;     /* NULL: answered, gone, or switched */
	struct conn *conn;           /* switched: the client's */
	struct port_way way;
	struct buf head; /* for the service, until it is connected */
	struct entry entry;
	struct room *room; /* NULL: not inside */
	struct room_command job;
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

/* passage_begin() - From inside on_head. Answers @x in every case, sooner or later. */
void passage_begin(struct port *port, struct http_exchange *x, const struct port_way *way);

/* passage_cut() - The port was closed. */
void passage_cut(struct passage *p);

/* passage_fail() - Say it to the client as far as that is still possible, and be over. */
void passage_fail(struct passage *p, int status, const char *code, const char *hint,
		  const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* passage_end() - Let go of everything but the exchange and the connection. Idempotent. */
void passage_end(struct passage *p);
/* passage_part() - The exchange, which is the caller's now: nothing of us hears of it. NULL: it is gone. */
struct http_exchange *passage_part(struct passage *p);

/* passage_part_conn() - The client's connection in the same way: it writes out what it has, and ends alone. */
struct conn *passage_part_conn(struct passage *p);

/* passage_add_headers() - Those of the answer that are for the client. */
void passage_add_headers(struct passage *p);

/* passage_switch() - tunnel.c: the service said 101; @early: what it said behind that. */
void passage_switch(struct passage *p, const char *early, size_t len);
/* passage_join() - tunnel.c: say 101 to the client; from then on the two connections are one. */
void passage_join(struct passage *p, const char *protocol, const char *early, size_t len);

#endif
