/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate_sandbox.c - Sandboxes: their rules, their listening sockets, and reports about them.
 *
 * Pid 1 of the cell made the sockets, and they stay in its network namespace. They also keep that
 * namespace alive: so the front reports the end of a cell, and a gate whose front is gone ends.
 */
#include "gate/gate_sandbox.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/foreign.h"
#include "gate/flow.h"
#include "gate/gate.h"
#include "gate/http_rule.h"

#define ACCEPTS 16 /* per event: others have their turn */
#define PAUSE_NS (50 * CLOCK_NS_PER_MS)
#define SUMMARY_NS CLOCK_NS_PER_S
#define ASKS_PER_S 200u
#define REPORTS_PER_S 20u

bool rate_limit_take(struct rate_limit *b, uint64_t now_ns)
{
	uint64_t each = CLOCK_NS_PER_S / b->rate;

	if (b->full_ns < now_ns)
		b->full_ns = now_ns;
	if (b->full_ns - now_ns + each > b->burst * each)
		return false;
	b->full_ns += each;
	return true;
}

struct gate_sandbox *gate_sandbox_find(struct gate *g, uint32_t id)
{
	struct gate_sandbox *sb = LIST_FIRST(&g->sandboxes);

	while (sb && sb->id != id)
		sb = LIST_NEXT(sb, link);
	return sb;
}

/* ---- reports ------------------------------------------------------------------------------- */

static void on_summary(struct timer *t)
{
	struct gate_sandbox *sb = t->arg;
	struct gate_event ev = { .kind = GATE_FLOOD, .count = sb->unreported };

	if (control_event(sb->g, sb->id, &ev))
		sb->unreported = 0;
	else
		timer_set(&sb->g->loop, t, sb->g->loop.now_ns + SUMMARY_NS);
}

static void count(struct gate_numbers *n, enum gate_event_kind kind)
{
	if (kind == GATE_CLOSED)
		n->closed++;
	else if (kind == GATE_REFUSED)
		n->refused++;
	else if (kind == GATE_FAILED)
		n->failed++;
	else if (kind == GATE_NAME_REFUSED)
		n->names_refused++;
}

void gate_sandbox_report(struct gate_sandbox *sb, struct gate_event *ev)
{
	count(&sb->numbers, ev->kind);
	ev->count = 1;
	if (rate_limit_take(&sb->reports, sb->g->loop.now_ns) && control_event(sb->g, sb->id, ev))
		return;
	if (sb->unreported++ == 0)
		timer_set(&sb->g->loop, &sb->summary, sb->g->loop.now_ns + SUMMARY_NS);
}

void gate_sandbox_event(struct gate_sandbox *sb, enum gate_event_kind kind, const char *host,
			uint16_t port, const char *why)
{
	struct gate_event ev = { .kind = kind, .port = port };

	(void)snprintf(ev.host, sizeof(ev.host), "%s", host);
	(void)snprintf(ev.why, sizeof(ev.why), "%s", why);
	gate_sandbox_report(sb, &ev);
}

/* ---- sockets ------------------------------------------------------------------------------- */

static void set_all(struct gate_sandbox *sb, uint32_t events)
{
	loop_mod(&sb->dns_udp, events);
	loop_mod(&sb->dns_tcp, events);
	for (size_t i = 0; i < sb->n_ports; i++)
		loop_mod(&sb->listeners[i], events);
}

static void on_pause_over(struct timer *t)
{
	set_all(t->arg, EPOLLIN);
}

void gate_sandbox_pause(struct gate_sandbox *sb)
{
	set_all(sb, 0);
	timer_set(&sb->g->loop, &sb->pause, sb->g->loop.now_ns + PAUSE_NS);
}

static void stop_watching(struct watch *w)
{
	loop_del(w);
	w->fd = foreign_close(w->fd);
}

static void on_accept(struct watch *w, uint32_t events)
{
	struct gate_sandbox *sb = w->arg;

	(void)events;
	for (int i = 0; i < ACCEPTS; i++) {
		if (!rate_limit_take(&sb->connects, clock_now_ns())) {
			gate_sandbox_pause(sb);
			return;
		}
		int fd = foreign_accept(w->fd, &sb->stalled_ns);

		if (fd == -ETIMEDOUT) { /* pid 1 was taken over, and makes us wait */
			stop_watching(w);
			return;
		}
		if (fd < 0) {
			if (fd != -EAGAIN && fd != -ECONNABORTED)
				gate_sandbox_pause(sb); /* out of descriptors for now */
			return;
		}
		flow_begin(sb, fd);
	}
}

static bool is_dual(int fd)
{
	struct sockaddr_storage a = { 0 };
	socklen_t len = sizeof(a);

	return getsockname(fd, (struct sockaddr *)&a, &len) == 0 && a.ss_family == AF_INET6;
}

static int watch_socket(struct gate_sandbox *sb, struct watch *w, int fd,
			void (*fn)(struct watch *, uint32_t))
{
	*w = (struct watch){ .fd = fd, .events = EPOLLIN, .fn = fn, .arg = sb };
	return loop_add(&sb->g->loop, w, NULL);
}

/* ---- rules --------------------------------------------------------------------------------- */

static struct watch *old_listener(struct gate_sandbox *sb, uint16_t port)
{
	for (size_t i = 0; i < sb->n_ports; i++)
		if (sb->ports[i] == port && sb->listeners[i].fd >= 0)
			return &sb->listeners[i];
	return NULL;
}

/* The listening sockets of the new list: present ones, and those that came with the message. */
static void change_ports(struct gate_sandbox *sb, const struct gate_set *set, int *fds)
{
	int next[GATE_PORTS_MAX];

	for (size_t i = 0; i < set->n_ports; i++) {
		struct watch *old = old_listener(sb, set->ports[i]);

		next[i] = -1;
		if (set->fresh & 1u << i) {
			next[i] = TAKE_FD(*fds);
			fds++;
		} else if (old) {
			loop_del(old);
			next[i] = TAKE_FD(old->fd);
		}
	}
	for (size_t i = 0; i < sb->n_ports; i++)
		stop_watching(&sb->listeners[i]);
	sb->n_ports = set->n_ports;
	memcpy(sb->ports, set->ports, sizeof(sb->ports));
	for (size_t i = 0; i < sb->n_ports; i++) {
		sb->listeners[i] = (struct watch){ .fd = -1 };
		if (next[i] < 0)
			continue;
		sb->v6 = sb->v6 || is_dual(next[i]);
		(void)watch_socket(sb, &sb->listeners[i], next[i], on_accept);
	}
}

void gate_sandbox_judge_again(struct gate_sandbox *sb)
{
	struct flow *next;

	for (struct flow *f = LIST_FIRST(&sb->flows); f; f = next) {
		next = LIST_NEXT(f, link);
		flow_judge_again(f);
	}
}

static struct gate_sandbox *gate_sandbox_new(struct gate *g, uint32_t id)
{
	const struct gate_config *c = &g->config;
	struct gate_sandbox *sb = calloc(1, sizeof(*sb));

	if (!sb)
		return NULL;
	sb->g = g;
	sb->id = id;
	sb->dns_udp.fd = sb->dns_tcp.fd = -1;
	sb->connects = (struct rate_limit){ .rate = c->rate, .burst = c->rate * 2 };
	sb->asks = (struct rate_limit){ .rate = ASKS_PER_S, .burst = ASKS_PER_S * 2 };
	sb->reports = (struct rate_limit){ .rate = REPORTS_PER_S, .burst = REPORTS_PER_S * 5 };
	sb->pause = (struct timer){ .fn = on_pause_over, .arg = sb };
	sb->summary = (struct timer){ .fn = on_summary, .arg = sb };
	LIST_INSERT_HEAD(&g->sandboxes, sb, link);
	return sb;
}

struct gate_sandbox *gate_sandbox_get(struct gate *g, uint32_t id)
{
	struct gate_sandbox *sb = gate_sandbox_find(g, id);

	return sb ? sb : gate_sandbox_new(g, id);
}

bool gate_sandbox_has_rules(const struct gate_sandbox *sb, const char *host, uint16_t port)
{
	return http_ruled(sb->hosts.rules, sb->hosts.n_rules, host, port);
}

/* The front marks the sandboxes of fetchers; the gate was started with the list of indexes. */
const struct gate_index *gate_sandbox_index(const struct gate_sandbox *sb, const char *host,
					    uint16_t port)
{
	const struct gate_config *c = &sb->g->config;
	const struct host_map *n = &sb->hosts;
	bool fetcher = false;

	for (size_t i = 0; i < n->n_rules; i++)
		fetcher |= (n->rules[i].flags & GATE_INDEX) && n->rules[i].port == port &&
			   strcmp(n->rules[i].host, host) == 0;
	for (size_t i = 0; fetcher && i < c->n_indexes; i++)
		if (c->indexes[i].port == port && strcmp(c->indexes[i].host, host) == 0)
			return &c->indexes[i];
	return NULL;
}

bool gate_sandbox_inspects(const struct gate_sandbox *sb, const char *host, uint16_t port)
{
	return bindings_has(&sb->bindings, host) || gate_sandbox_has_rules(sb, host, port);
}

/* In the order of wire/gate.h. */
static bool are_sockets(const struct gate_set *set, const int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (foreign_check(fds[i],
				  set->dns && i == 0 ? FOREIGN_DATAGRAM : FOREIGN_LISTENER) < 0)
			return false;
	return true;
}

int gate_sandbox_set(struct gate *g, uint32_t id, const struct gate_set *set,
		     const struct gate_rule *rules, int *fds, size_t n_fds)
{
	struct gate_sandbox *sb;
	size_t want = (set->dns ? 2 : 0) + (size_t)__builtin_popcount(set->fresh);

	if (set->n_ports > GATE_PORTS_MAX || set->fresh >> set->n_ports || set->dns > 1 ||
	    want != n_fds || !are_sockets(set, fds, n_fds))
		return -EINVAL;
	sb = gate_sandbox_get(g, id);
	int r = sb ? host_map_set(&sb->hosts, rules, set->n_rules) : -ENOMEM;

	if (r < 0)
		return r;
	if (set->dns) {
		stop_watching(&sb->dns_udp);
		stop_watching(&sb->dns_tcp);
		(void)watch_socket(sb, &sb->dns_udp, TAKE_FD(fds[0]), resolver_udp);
		(void)watch_socket(sb, &sb->dns_tcp, TAKE_FD(fds[1]), resolver_tcp);
		fds += 2;
	}
	change_ports(sb, set, fds);
	gate_sandbox_judge_again(sb);
	return 0;
}

void gate_sandbox_close(struct gate_sandbox *sb)
{
	while (!LIST_EMPTY(&sb->flows))
		flow_end(LIST_FIRST(&sb->flows), "the sandbox is over");
	resolver_close(sb);
	stop_watching(&sb->dns_udp);
	stop_watching(&sb->dns_tcp);
	for (size_t i = 0; i < sb->n_ports; i++)
		stop_watching(&sb->listeners[i]);
	timer_cancel(&sb->pause);
	timer_cancel(&sb->summary);
	if (sb->unreported > 0) {
		struct gate_event ev = { .kind = GATE_FLOOD, .count = sb->unreported };

		(void)control_event(sb->g, sb->id, &ev);
	}
	host_map_free(&sb->hosts);
	bindings_free(&sb->bindings);
	LIST_REMOVE(sb, link);
	free(sb->recent);
	free(sb);
}
