/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate_sandbox.h - One sandbox in the gate: its rules and names, the sockets in its cell, its
 * flows.
 */
#ifndef CAISSON_GATE_GATE_SANDBOX_H
#define CAISSON_GATE_GATE_SANDBOX_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "gate/bindings.h"
#include "net/loop.h"
#include "wire/gate.h"

struct gate;
struct gate_index;

/* The names that a sandbox may reach (host_map.c). */
struct host_map {
	struct gate_rule *rules;
	size_t n_rules;
	char **hosts; /* by index */
	size_t n_hosts, cap_hosts;
};

/* A limit of events per second, with a burst. */
struct rate_limit {
	uint64_t rate, burst;
	uint64_t full_ns; /* when the whole burst is available again */
};

/* rate_limit_take() - Count one event. False: it exceeds the limit. */
bool rate_limit_take(struct rate_limit *b, uint64_t now_ns);

struct gate_sandbox {
	struct gate *g;
	LIST_ENTRY(gate_sandbox) link; /* in the gate */
	uint32_t id;
	struct host_map hosts;
	struct bindings bindings;
	struct watch dns_udp, dns_tcp;
	struct watch listeners[GATE_PORTS_MAX]; /* by the index in ports */
	uint16_t ports[GATE_PORTS_MAX];
	size_t n_ports;
	bool v6;                              /* the listeners have both families */
	LIST_HEAD(query_list, query) queries; /* connections to the resolver */
	size_t n_queries;
	LIST_HEAD(flow_list, flow) flows;
	struct gate_numbers numbers;
	struct gate_name *recent; /* requested names, the newest first: GATE_NAMES_SHOWN at most */
	size_t n_recent;
	struct rate_limit connects, asks, reports;
	struct timer pause;   /* no socket is read before this: too much came at once */
	struct timer summary; /* of events that were not reported one by one */
	uint64_t unreported;
	uint64_t stalled_ns; /* time that accepting has cost: base/foreign.h */
};

struct gate_sandbox *gate_sandbox_find(struct gate *g, uint32_t id);
/* gate_sandbox_get() - Find it, or make it. NULL: out of memory. */
struct gate_sandbox *gate_sandbox_get(struct gate *g, uint32_t id);
/* gate_sandbox_index() - The package index at this host and port, for the sandbox of a fetcher;
 * NULL: none. */
const struct gate_index *gate_sandbox_index(const struct gate_sandbox *sb, const char *host,
					    uint16_t port);
/* gate_sandbox_has_rules() - Whether rules for HTTP requests hold for this host.
 * gate_sandbox_inspects(): whether the gate reads requests to it. */
bool gate_sandbox_has_rules(const struct gate_sandbox *sb, const char *host, uint16_t port);
bool gate_sandbox_inspects(const struct gate_sandbox *sb, const char *host, uint16_t port);

/*
 * gate_sandbox_set() - GATE_SET. @fds: of the resolver and fresh ones, in the order of wire/gate.h;
 * those that are taken are set to -1. 0, or -errno and nothing has changed.
 */
int gate_sandbox_set(struct gate *g, uint32_t id, const struct gate_set *set,
		     const struct gate_rule *rules, int *fds, size_t n_fds);
void gate_sandbox_close(struct gate_sandbox *sb);
/* gate_sandbox_judge_again() - Rules or secrets changed: cut the flows that are not allowed any
 * more. */
void gate_sandbox_judge_again(struct gate_sandbox *sb);

/* gate_sandbox_report() - Count an event and send it to the front. Beyond a rate, events are only
 * counted. */
void gate_sandbox_report(struct gate_sandbox *sb, struct gate_event *ev);
/* gate_sandbox_event() - Report an event without numbers. */
void gate_sandbox_event(struct gate_sandbox *sb, enum gate_event_kind kind, const char *host,
			uint16_t port, const char *why);

/* gate_sandbox_pause() - Too much came at once: accept and answer nothing for a moment. */
void gate_sandbox_pause(struct gate_sandbox *sb);

/* resolver.c: the sockets for DNS. */
void resolver_udp(struct watch *w, uint32_t events);
void resolver_tcp(struct watch *w, uint32_t events);
void resolver_close(struct gate_sandbox *sb);
/* resolver_note() - Put a requested name first in sb->recent. Without memory it is not listed. */
void resolver_note(struct gate_sandbox *sb, const char *host, bool allowed);

/* ---- host_map.c */

/*
 * host_map_set() - Copies @rules. -EINVAL: a host is not canonical (lower-case LDH labels and '_',
 * 1 to 253 bytes, no trailing dot, no IP literal), or another text is wrong; nothing has changed
 * then.
 */
int host_map_set(struct host_map *n, const struct gate_rule *rules, size_t n_rules);
void host_map_free(struct host_map *n);

/* host_map_allows() - Whether a rule allows @host; @port 0: on any port. */
bool host_map_allows(const struct host_map *n, const char *host, uint16_t port);

/*
 * host_map_index() - The number of an allowed name, from 0; a new name gets the next one.
 * Return: -ENOENT when no rule allows it, -ENOSPC when there are too many, -ENOMEM.
 */
int host_map_index(struct host_map *n, const char *host);

void host_map_address4(size_t index, struct in_addr *ret);
void host_map_address6(size_t index, struct in6_addr *ret);

/* host_map_host() - The name that an address stands for; IPv4 as mapped in IPv6. NULL: none. */
const char *host_map_host(const struct host_map *n, const struct in6_addr *local);

#endif
