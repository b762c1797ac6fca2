/* SPDX-License-Identifier: Apache-2.0 */
/*
 * box.h - One sandbox as the gate knows it: its rules and names, the sockets in its cell, its
 * flows.
 */
#ifndef CAISSON_GATE_BOX_H
#define CAISSON_GATE_BOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gate/asked.h"
#include "gate/binds.h"
#include "gate/bucket.h"
#include "gate/names.h"
#include "net/loop.h"
#include "wire/gate.h"

struct flow;
struct gate;
struct gate_index;
struct query;

struct box {
	struct gate *g;
	struct box *prev, *next;
	uint32_t id;
	struct names names;
	struct binds binds;
	struct watch dns_udp, dns_tcp;
	struct watch listeners[GATE_PORTS_MAX]; /* by the index in ports */
	uint16_t ports[GATE_PORTS_MAX];
	size_t n_ports;
	bool v6;               /* what listens does so on both families */
	struct query *queries; /* connections to the resolver */
	size_t n_queries;
	struct flow *flows;
	struct gate_numbers numbers;
	struct asked asked;
	struct bucket connects, asks, tells;
	struct timer pause;   /* sockets are not read before this: too much came at once */
	struct timer summary; /* events that were not told one by one */
	uint64_t untold;
	uint64_t stalled_ns; /* what accepting has made us wait: base/foreign.h */
};

struct box *box_find(struct gate *g, uint32_t id);
struct box *box_get(struct gate *g, uint32_t id); /* or make it; NULL: out of memory */
/* box_index() - The package index that this host and port are to the box, a fetcher's; NULL: none.
 */
const struct gate_index *box_index(const struct box *b, const char *host, uint16_t port);
/* box_inspects() - Whether requests to this host are looked into. */
bool box_is_ruled(const struct box *b, const char *host, uint16_t port); /* by rules for HTTP */
bool box_inspects(const struct box *b, const char *host, uint16_t port);

/*
 * box_set() - GATE_SET. @fds: of the resolver and fresh ones, in the order of wire/gate.h; what is
 * taken is set to -1. 0, or -errno and nothing has changed.
 */
int box_set(struct gate *g, uint32_t id, const struct gate_set *set, const struct gate_rule *rules,
	    int *fds, size_t n_fds);
void box_close(struct box *b);
/* box_judge_again() - Rules or secrets are others: what they do not allow any more is cut. */
void box_judge_again(struct box *b);

/* box_tell() - To the front, and into the numbers. Bounded: what is too much is counted. */
void box_tell(struct box *b, struct gate_event *ev);
/* box_refuse() - The same for a refusal. */
void box_refuse(struct box *b, enum gate_event_kind kind, const char *host, uint16_t port,
		const char *address, const char *why);

/* box_rest() - Too much came at once: nothing is accepted or answered for a moment. */
void box_rest(struct box *b);

/* resolver.c: the sockets on which names are asked for. */
void resolver_udp(struct watch *w, uint32_t events);
void resolver_tcp(struct watch *w, uint32_t events);
void resolver_close(struct box *b);

#endif
