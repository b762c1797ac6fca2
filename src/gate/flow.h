/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flow.h - One connection out of a cell, from accept to the end of both directions.
 *
 *   accepted --> name resolved, addresses judged --> connecting --> both ends are there
 *            \-> first bytes looked at (hello.h), never read ----/        |
 *                                                              a path takes it over
 *
 * A path is what moves the bytes once both ends are there and the first bytes have been judged: the
 * plain one (splice.c), or one that ends TLS here. It finds two non-blocking sockets that nobody
 * watches, of which nothing was read: what was looked at is still to be read from the inner one.
 * When it is done it calls flow_end(); when the flow is ended by others (rules, limits, the
 * sandbox) its cut() is called, and frees what the path has. The sockets are closed by the flow.
 */
#ifndef CAISSON_GATE_FLOW_H
#define CAISSON_GATE_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "gate/hello.h"
#include "gate/lookup.h"
#include "net/loop.h"
#include "wire/gate.h"

struct box;
struct flow;
struct gate_index;

struct flow_path {
	void (*begin)(struct flow *f);
	void (*cut)(struct flow *f);
	/* Why the rules and secrets of now do not let it go on; NULL: they do. They allow host and
	 * port. */
	const char *(*objection)(const struct flow *f);
};

struct flow {
	struct box *box;
	struct flow *prev, *next; /* in the box */
	char host[GATE_HOST_MAX];
	uint16_t port;
	const struct gate_index *index; /* that it leads to; NULL: none */
	struct hello hello;        /* what the first bytes said; kind HELLO_MORE: not known yet */
	struct watch inner, outer; /* the cell's side, the other side */
	struct in6_addr address;   /* of the other end; see has_address */
	bool has_address, by_proxy, asked_proxy;
	bool judged; /* the first bytes may go on; a path asks flow_look() until then */
	size_t seen; /* of the first bytes, while they are not judged */
	size_t may;  /* bytes of the client that a path may move; SIZE_MAX when it is judged */
	struct buf passed; /* those that went on while it could be any protocol yet (flow_look()) */
	bool connected;    /* the other end is there */
	bool over;
	const char *doom; /* refused, and only the way to say so is not known yet */
	struct lookup lookup;
	size_t next_address;
	const char *refusal; /* why the last address was not tried; NULL: all were */
	char refusal_text[GATE_REASON_MAX];
	int error; /* of the last one that was tried */
	struct timer timer, hello_timer;
	const struct flow_path *path;
	void *state; /* the path's own */
	uint64_t up, down, begun_ns, moved_ns;
	struct deferred reaper;
};

/* flow_begin() - @fd: accepted, non-blocking; owned from now on. */
void flow_begin(struct box *b, int fd);

/* flow_end() - Over: @why for the ledger; NULL: by itself. Also cuts the path. Idempotent. */
void flow_end(struct flow *f, const char *why);

/* flow_moved() - Count bytes. False: that was too much and the flow is over. */
bool flow_moved(struct flow *f, uint64_t up, uint64_t down);

/* flow_judge_again() - The rules or the secrets are others: end it if they do not let it go on. */
void flow_judge_again(struct flow *f);

/* flow_refuse() - The same as flow_end(), told as a refusal, to the cell too as far as its protocol
 * has words. */
void flow_refuse(struct flow *f, const char *why);

/* flow_refuse_soon() - The same a moment later: the client may be about to say in which words it
 * wants to hear it. */
void flow_refuse_soon(struct flow *f, const char *why);
/* flow_fail() - It was allowed, and the other end could not be had. flow_connected(): it is there
 * (dial.h). */
void flow_fail(struct flow *f, const char *why);
void flow_connected(struct flow *f);

/*
 * flow_look() - Judge the first bytes, which can be peeked at; afterwards the flow is judged,
 * refused, or they are not enough yet: then f->may says how many of them may go on meanwhile. For a
 * path that began before the client had spoken, when f->may is 0.
 */
void flow_look(struct flow *f);

/* flow_waits() - Whether the client's first bytes are awaited before a path begins (paths.c). */
bool flow_waits(const struct flow *f);
/* flow_needs_http() - Whether any other protocol is refused, and on port 80 TLS too (paths.c). */
bool flow_needs_http(const struct flow *f);

/* flow_choose() - Which path a flow takes (paths.c). */
const struct flow_path *flow_choose(const struct flow *f);

extern const struct flow_path splice_path; /* bytes as they come, both ways */

#endif
