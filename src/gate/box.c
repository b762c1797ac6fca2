/* SPDX-License-Identifier: Apache-2.0 */
/*
 * box.c - Sandboxes: what they may, where they are listened to, and what is told of them.
 *
 * The sockets were made by pid 1 of the cell and stay in its network. They also keep that network
 * alive: so the front says when a cell is over, and a gate whose front is gone ends.
 */
#include "gate/box.h"

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

#define ACCEPTS 16 /* per event: others have a right to be heard too */
#define REST_NS (50 * CLOCK_NS_PER_MS)
#define SUMMARY_NS CLOCK_NS_PER_S
#define ASKS_PER_S 200u
#define TELLS_PER_S 20u

struct box *box_find(struct gate *g, uint32_t id)
{
	struct box *b = g->boxes;

	while (b && b->id != id)
		b = b->next;
	return b;
}

/* ---- telling ------------------------------------------------------------------------------- */

static void on_summary(struct timer *t)
{
	struct box *b = t->arg;
	struct gate_event ev = { .kind = GATE_FLOOD, .count = b->untold };

	if (control_event(b->g, b->id, &ev))
		b->untold = 0;
	else
		timer_set(&b->g->loop, t, b->g->loop.now_ns + SUMMARY_NS);
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

void box_tell(struct box *b, struct gate_event *ev)
{
	count(&b->numbers, ev->kind);
	ev->count = 1;
	if (bucket_take(&b->tells, b->g->loop.now_ns) && control_event(b->g, b->id, ev))
		return;
	if (b->untold++ == 0)
		timer_set(&b->g->loop, &b->summary, b->g->loop.now_ns + SUMMARY_NS);
}

void box_refuse(struct box *b, enum gate_event_kind kind, const char *host, uint16_t port,
		const char *address, const char *why)
{
	struct gate_event ev = { .kind = kind, .port = port };

	(void)snprintf(ev.host, sizeof(ev.host), "%s", host);
	(void)snprintf(ev.address, sizeof(ev.address), "%s", address);
	(void)snprintf(ev.why, sizeof(ev.why), "%s", why);
	box_tell(b, &ev);
}

/* ---- listening ----------------------------------------------------------------------------- */

static void set_all(struct box *b, uint32_t events)
{
	loop_mod(&b->dns_udp, events);
	loop_mod(&b->dns_tcp, events);
	for (size_t i = 0; i < b->n_ports; i++)
		loop_mod(&b->listeners[i], events);
}

static void on_rested(struct timer *t)
{
	set_all(t->arg, EPOLLIN);
}

void box_rest(struct box *b)
{
	set_all(b, 0);
	timer_set(&b->g->loop, &b->pause, b->g->loop.now_ns + REST_NS);
}

static void leave(struct watch *w)
{
	loop_del(w);
	w->fd = foreign_close(w->fd);
}

static void on_accept(struct watch *w, uint32_t events)
{
	struct box *b = w->arg;

	(void)events;
	for (int i = 0; i < ACCEPTS; i++) {
		if (!bucket_take(&b->connects, clock_now_ns())) {
			box_rest(b);
			return;
		}
		int fd = foreign_accept(w->fd, &b->stalled_ns);

		if (fd == -ETIMEDOUT) { /* pid 1 has been taken over, and has us wait */
			leave(w);
			return;
		}
		if (fd < 0) {
			if (fd != -EAGAIN && fd != -ECONNABORTED)
				box_rest(b); /* no descriptors: somebody will give some back */
			return;
		}
		flow_begin(b, fd);
	}
}

static bool is_dual(int fd)
{
	struct sockaddr_storage a = { 0 };
	socklen_t len = sizeof(a);

	return getsockname(fd, (struct sockaddr *)&a, &len) == 0 && a.ss_family == AF_INET6;
}

static int attend(struct box *b, struct watch *w, int fd, void (*fn)(struct watch *, uint32_t))
{
	*w = (struct watch){ .fd = fd, .events = EPOLLIN, .fn = fn, .arg = b };
	return loop_add(&b->g->loop, w, NULL);
}

/* ---- rules --------------------------------------------------------------------------------- */

static struct watch *old_listener(struct box *b, uint16_t port)
{
	for (size_t i = 0; i < b->n_ports; i++)
		if (b->ports[i] == port && b->listeners[i].fd >= 0)
			return &b->listeners[i];
	return NULL;
}

/* The listening sockets of the new list: those that are there already, and those that came. */
static void change_ports(struct box *b, const struct gate_set *set, int *fds)
{
	int next[GATE_PORTS_MAX];

	for (size_t i = 0; i < set->n_ports; i++) {
		struct watch *old = old_listener(b, set->ports[i]);

		next[i] = -1;
		if (set->fresh & 1u << i) {
			next[i] = TAKE_FD(*fds);
			fds++;
		} else if (old) {
			loop_del(old);
			next[i] = TAKE_FD(old->fd);
		}
	}
	for (size_t i = 0; i < b->n_ports; i++)
		leave(&b->listeners[i]);
	b->n_ports = set->n_ports;
	memcpy(b->ports, set->ports, sizeof(b->ports));
	for (size_t i = 0; i < b->n_ports; i++) {
		b->listeners[i] = (struct watch){ .fd = -1 };
		if (next[i] < 0)
			continue;
		b->v6 = b->v6 || is_dual(next[i]);
		(void)attend(b, &b->listeners[i], next[i], on_accept);
	}
}

void box_judge_again(struct box *b)
{
	struct flow *next;

	for (struct flow *f = b->flows; f; f = next) {
		next = f->next;
		flow_judge_again(f);
	}
}

static struct box *box_new(struct gate *g, uint32_t id)
{
	const struct gate_config *c = &g->config;
	struct box *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->g = g;
	b->id = id;
	b->dns_udp.fd = b->dns_tcp.fd = -1;
	b->connects = (struct bucket){ .rate = c->rate, .burst = c->rate * 2 };
	b->asks = (struct bucket){ .rate = ASKS_PER_S, .burst = ASKS_PER_S * 2 };
	b->tells = (struct bucket){ .rate = TELLS_PER_S, .burst = TELLS_PER_S * 5 };
	b->pause = (struct timer){ .fn = on_rested, .arg = b };
	b->summary = (struct timer){ .fn = on_summary, .arg = b };
	b->next = g->boxes;
	if (b->next)
		b->next->prev = b;
	g->boxes = b;
	return b;
}

struct box *box_get(struct gate *g, uint32_t id)
{
	struct box *b = box_find(g, id);

	return b ? b : box_new(g, id);
}

bool box_is_ruled(const struct box *b, const char *host, uint16_t port)
{
	return http_ruled(b->names.rules, b->names.n_rules, host, port);
}

/* The front says which box is a fetcher's, and we have known from the start what an index is. */
const struct gate_index *box_index(const struct box *b, const char *host, uint16_t port)
{
	const struct gate_config *c = &b->g->config;
	const struct names *n = &b->names;
	bool fetcher = false;

	for (size_t i = 0; i < n->n_rules; i++)
		fetcher |= (n->rules[i].flags & GATE_INDEX) && n->rules[i].port == port &&
			   strcmp(n->rules[i].host, host) == 0;
	for (size_t i = 0; fetcher && i < c->n_indexes; i++)
		if (c->indexes[i].port == port && strcmp(c->indexes[i].host, host) == 0)
			return &c->indexes[i];
	return NULL;
}

bool box_inspects(const struct box *b, const char *host, uint16_t port)
{
	return binds_has(&b->binds, host) || box_is_ruled(b, host, port);
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

int box_set(struct gate *g, uint32_t id, const struct gate_set *set, const struct gate_rule *rules,
	    int *fds, size_t n_fds)
{
	struct box *b;
	size_t want = (set->dns ? 2 : 0) + (size_t)__builtin_popcount(set->fresh);

	if (set->n_ports > GATE_PORTS_MAX || set->fresh >> set->n_ports || set->dns > 1 ||
	    want != n_fds || !are_sockets(set, fds, n_fds))
		return -EINVAL;
	b = box_get(g, id);
	int r = b ? names_set(&b->names, rules, set->n_rules) : -ENOMEM;

	if (r < 0)
		return r;
	if (set->dns) {
		leave(&b->dns_udp);
		leave(&b->dns_tcp);
		(void)attend(b, &b->dns_udp, TAKE_FD(fds[0]), resolver_udp);
		(void)attend(b, &b->dns_tcp, TAKE_FD(fds[1]), resolver_tcp);
		fds += 2;
	}
	change_ports(b, set, fds);
	box_judge_again(b);
	return 0;
}

void box_close(struct box *b)
{
	while (b->flows)
		flow_end(b->flows, "the sandbox is over");
	resolver_close(b);
	leave(&b->dns_udp);
	leave(&b->dns_tcp);
	for (size_t i = 0; i < b->n_ports; i++)
		leave(&b->listeners[i]);
	timer_cancel(&b->pause);
	timer_cancel(&b->summary);
	if (b->untold > 0) {
		struct gate_event ev = { .kind = GATE_FLOOD, .count = b->untold };

		(void)control_event(b->g, b->id, &ev);
	}
	names_free(&b->names);
	asked_free(&b->asked);
	binds_free(&b->binds);
	if (b->prev)
		b->prev->next = b->next;
	else
		b->g->boxes = b->next;
	if (b->next)
		b->next->prev = b->prev;
	free(b);
}
