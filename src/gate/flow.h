/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flow.h - One connection out of a cell, from accept to the end of both directions.
 *
 *   accepted --> name resolved, addresses judged --> connecting --> both ends are there
 *            \-> first bytes peeked at (sniff.h) ----------------/        |
 *                                                              a path takes it over
 *
 * A path moves the bytes once both ends are connected and the first bytes have been judged: by
 * splicing (splice.c), or by reading HTTP (inspect.c). It finds two non-blocking sockets that are
 * not in the loop; nothing was read from them. At its end it calls flow_end(). When something else
 * ends the flow (rules, limits, the end of the sandbox), the flow calls cut(), which frees what the
 * path has. The flow closes the sockets.
 */
#ifndef CAISSON_GATE_FLOW_H
#define CAISSON_GATE_FLOW_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/buf.h"
#include "gate/lookup.h"
#include "gate/sniff.h"
#include "net/loop.h"
#include "wire/gate.h"

struct gate_sandbox;
struct flow;
struct gate_index;

struct flow_path {
	void (*begin)(struct flow *f);
	void (*cut)(struct flow *f);
	/* Why the present rules and secrets forbid the flow; NULL: they do not. They allow host and
	 * port. */
	const char *(*objection)(const struct flow *f);
};

struct flow {
	struct gate_sandbox *sandbox;
	LIST_ENTRY(flow) link; /* in the sandbox */
	char host[GATE_HOST_MAX];
	uint16_t port;
	const struct gate_index *index; /* at that host and port; NULL: none */
	struct sniff sniff;             /* the verdict on the first bytes */
	struct watch inner, outer;      /* to the cell, to the server */
	struct in6_addr address;        /* of the server; see has_address */
	bool has_address, by_proxy, asked_proxy;
	bool judged; /* the first bytes may go on; a path calls flow_look() until then */
	size_t seen; /* number of first bytes, while they are not judged */
	size_t may;  /* bytes of the client that a path may move; SIZE_MAX when it is judged */
	struct buf passed; /* bytes that went on before they were judged (flow_sniff.c) */
	bool connected;    /* to the server */
	bool over;
	const char *doom; /* why it is refused, once the client's protocol is known */
	struct lookup lookup;
	size_t next_address;
	const char *refusal; /* of the last address that was not allowed; NULL: all were */
	char refusal_text[GATE_REASON_MAX];
	int error; /* of the last address that was tried */
	struct timer timer, sniff_timer;
	const struct flow_path *path;
	void *state; /* the path's own */
	uint64_t up, down, begun_ns, moved_ns;
	struct deferred reaper;
};

/* flow_begin() - @fd: accepted, non-blocking; owned from now on. */
void flow_begin(struct gate_sandbox *sb, int fd);

/* flow_end() - End the flow and cut its path. @why: for the ledger; NULL: an orderly end.
 * Idempotent. */
void flow_end(struct flow *f, const char *why);

/* flow_moved() - Count bytes. False: the limit is exceeded and the flow is over. */
bool flow_moved(struct flow *f, uint64_t up, uint64_t down);

/* flow_judge_again() - Rules or secrets changed: end the flow if they forbid it. */
void flow_judge_again(struct flow *f);

/* flow_refuse() - End the flow, report a refusal, and tell the client in its protocol if
 * possible. */
void flow_refuse(struct flow *f, const char *why);

/* flow_refuse_soon() - The same a moment later, when the client's first bytes show its protocol. */
void flow_refuse_soon(struct flow *f, const char *why);
/* flow_fail() - The server is allowed but cannot be reached. flow_connected() - It is connected. */
void flow_fail(struct flow *f, const char *why);
void flow_connected(struct flow *f);
/* flow_join() - Begin the path, if the server is connected and the first bytes allow it. */
void flow_join(struct flow *f);

/*
 * dial_begin() - Resolve, judge and connect. Ends with flow_connected(), flow_fail() or
 * flow_refuse_soon(), perhaps before it returns; the end of the flow stops it.
 * dial_late() - The flow's timer: the current attempt has had its time.
 */
void dial_begin(struct flow *f);
void dial_late(struct flow *f);

/*
 * flow_look() - Judge the first bytes, which can be peeked at. Afterwards the flow is judged or
 * refused, or the bytes are not enough: then f->may of them may go on meanwhile. For a path that
 * began before the client's first bytes came, when f->may is 0.
 */
void flow_look(struct flow *f);

/* flow_sniff_late() - The timer for first bytes: none came, or half a head. */
void flow_sniff_late(struct timer *t);

/* flow_waits() - Whether the client's first bytes are awaited before a path begins. */
bool flow_waits(const struct flow *f);
/* flow_needs_http() - Whether any other protocol is refused, and on port 80 TLS too. */
bool flow_needs_http(const struct flow *f);

/* flow_choose() - The path that a flow takes. */
const struct flow_path *flow_choose(const struct flow *f);

extern const struct flow_path splice_path; /* moves bytes unchanged */

#endif
