/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flow.c - The life of a connection out of a cell, up to the point where its bytes move.
 *
 * Theory of operation. The address that the cell connected to stands for a name. While the gate
 * resolves the name and connects outside (dial.c), it judges the first bytes of the client
 * (flow_sniff.c). Both have to succeed; then a path takes over. Before that, no byte of the client
 * leaves (flow_sniff.c has the one exception), and bytes of the server pass only on ports where a
 * server may send first.
 *
 * The gate refuses a connection in the client's protocol when it knows it: with a TLS alert, or
 * with an HTTP 403 that gives the reason. Otherwise it resets the connection. It waits only a
 * moment for the first bytes of a client that is to be refused.
 */
#include "gate/flow.h"

#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "gate/gate.h"
#include "gate/gate_sandbox.h"

#define RESOLVE_NS (10 * CLOCK_NS_PER_S)
#define SNIFF_NS (30 * CLOCK_NS_PER_S)   /* for first bytes that the gate waits for */
#define REFUSE_NS (50 * CLOCK_NS_PER_MS) /* for first bytes of a client that is to be refused */
#define IDLE_NS (3600 * CLOCK_NS_PER_S)

/* ---- the end ------------------------------------------------------------------------------- */

static void reset(int fd)
{
	static const struct linger hard = { .l_onoff = 1 };

	if (fd >= 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
}

/* Release everything. @hard: with a reset of both connections. */
static void dismantle(struct flow *f, bool hard)
{
	struct gate_sandbox *sb = f->sandbox;

	f->over = true;
	timer_cancel(&f->timer);
	timer_cancel(&f->sniff_timer);
	lookup_cancel(&f->lookup);
	if (f->path)
		f->path->cut(f);
	loop_del(&f->inner);
	loop_del(&f->outer);
	if (hard) {
		reset(f->inner.fd);
		reset(f->outer.fd);
	}
	f->inner.fd = fd_close(f->inner.fd);
	f->outer.fd = fd_close(f->outer.fd);
	buf_free(&f->passed);
	LIST_REMOVE(f, link);
	sb->numbers.live--;
	sb->g->n_flows--;
	loop_free_later(&sb->g->loop, &f->reaper, f);
}

static void report(struct flow *f, enum gate_event_kind kind, const char *why)
{
	struct gate_event ev = { .kind = kind, .port = f->port, .up = f->up, .down = f->down };

	(void)snprintf(ev.host, sizeof(ev.host), "%s", f->host);
	(void)snprintf(ev.why, sizeof(ev.why), "%s", why ? why : "");
	if (f->has_address)
		address_text(&f->address, ev.address);
	gate_sandbox_report(f->sandbox, &ev);
}

void flow_end(struct flow *f, const char *why)
{
	if (f->over)
		return;
	if (f->path)
		report(f, GATE_CLOSED, why);
	dismantle(f, why != NULL);
}

void flow_fail(struct flow *f, const char *why)
{
	report(f, GATE_FAILED, why);
	dismantle(f, true);
}

bool flow_moved(struct flow *f, uint64_t up, uint64_t down)
{
	struct gate_sandbox *sb = f->sandbox;

	f->up += up;
	f->down += down;
	f->moved_ns = sb->g->loop.now_ns;
	sb->numbers.up += up;
	sb->numbers.down += down;
	if (sb->g->config.bytes == 0 || sb->numbers.up + sb->numbers.down <= sb->g->config.bytes)
		return true;
	flow_end(f, "the sandbox has moved as many bytes as it may");
	return false;
}

/* ---- refusals ------------------------------------------------------------------------------ */

/* Fatal, access_denied (49): the alert for a rule. */
static const uint8_t tls_denied[] = { 21, 3, 1, 0, 2, 2, 49 };

static void send_refusal(struct flow *f, const char *why)
{
	static char trash[SNIFF_MAX];
	char body[512], head[1024];

	/* Unread bytes would make the Linux kernel send a reset before the answer. */
	while (recv(f->inner.fd, trash, sizeof(trash), MSG_DONTWAIT) == (ssize_t)sizeof(trash))
		;
	if (sniff_like(&f->sniff) == SNIFF_TLS) {
		(void)!send(f->inner.fd, tls_denied, sizeof(tls_denied), MSG_NOSIGNAL);
		return;
	}
	int n = snprintf(body, sizeof(body), "egress to %s:%u was refused: %s\n", f->host, f->port,
			 why);

	n = snprintf(head, sizeof(head),
		     "HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n"
		     "Connection: close\r\nVia: 1.1 caisson-gate\r\n\r\n%s",
		     n, body);
	(void)!send(f->inner.fd, head, (size_t)n, MSG_NOSIGNAL);
}

static bool can_tell(const struct flow *f)
{
	return f->sniff.kind == SNIFF_TLS || f->sniff.kind == SNIFF_HTTP ||
	       (f->sniff.kind == SNIFF_BAD && f->sniff.like != SNIFF_OTHER);
}

void flow_refuse(struct flow *f, const char *why)
{
	bool told = can_tell(f);

	if (f->over)
		return;
	report(f, GATE_REFUSED, why);
	if (told)
		send_refusal(f, why);
	dismantle(f, !told);
}

void flow_refuse_soon(struct flow *f, const char *why)
{
	if (can_tell(f) || f->sniff.kind == SNIFF_OTHER) {
		flow_refuse(f, why);
		return;
	}
	f->doom = why;
	timer_set(&f->sandbox->g->loop, &f->timer, f->sandbox->g->loop.now_ns + REFUSE_NS);
}

/* ---- both ends ----------------------------------------------------------------------------- */

/*
 * On a port where servers may send first, the path begins before the client's first bytes have
 * come, and calls flow_look() before the first of them goes on.
 */
void flow_join(struct flow *f)
{
	if (!f->connected || f->doom || (f->may == 0 && (f->seen > 0 || flow_waits(f))))
		return;
	loop_del(&f->inner);
	loop_del(&f->outer);
	timer_cancel(&f->sniff_timer);
	f->moved_ns = f->sandbox->g->loop.now_ns;
	timer_set(&f->sandbox->g->loop, &f->timer, f->moved_ns + IDLE_NS);
	f->path = flow_choose(f);
	f->sandbox->numbers.opened++;
	report(f, GATE_OPENED, NULL);
	f->path->begin(f);
}

static void on_inner(struct watch *w, uint32_t events)
{
	(void)events;
	flow_look(w->arg);
}

/* ---- changed rules ------------------------------------------------------------------------- */

void flow_judge_again(struct flow *f)
{
	const struct gate_sandbox *sb = f->sandbox;
	const char *why = NULL;

	if (!host_map_allows(&sb->hosts, f->host, f->port))
		why = "the rules do not allow it any more";
	else if (f->path)
		why = f->path->objection(f);
	else if (f->may > 0 && f->sniff.kind != SNIFF_TLS && f->sniff.kind != SNIFF_HTTP &&
		 flow_needs_http(f))
		why = "only some HTTP requests to this host are allowed";
	if (why && f->path) {
		gate_sandbox_event(f->sandbox, GATE_REFUSED, f->host, f->port, why);
		flow_end(f, why);
	} else if (why) {
		flow_refuse(f, why);
	}
}

/* ---- the server ---------------------------------------------------------------------------- */

static void on_timer(struct timer *t)
{
	struct flow *f = t->arg;
	uint64_t now = f->sandbox->g->loop.now_ns;

	if (f->doom) {
		flow_refuse(f, f->doom);
	} else if (!f->connected) {
		dial_late(f);
	} else if (now < f->moved_ns + IDLE_NS) {
		timer_set(&f->sandbox->g->loop, t, f->moved_ns + IDLE_NS);
	} else {
		flow_end(f, "no byte moved for an hour");
	}
}

/*
 * The gate sends each piece at once. A connection within this machine, to a proxy or a service that
 * the operator allows, needs no congestion control that paces: see cell/stage_net.c. Elsewhere the
 * host's choice holds.
 */
static void tune(struct flow *f)
{
	static const int on = 1;
	struct sockaddr_storage from = { 0 };
	socklen_t len = sizeof(from);
	struct in6_addr source;

	(void)setsockopt(f->outer.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (getsockname(f->outer.fd, (struct sockaddr *)&from, &len) == 0 &&
	    address_of((const struct sockaddr *)&from, &source) &&
	    memcmp(&source, &f->address, sizeof(source)) == 0)
		(void)setsockopt(f->outer.fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
}

void flow_connected(struct flow *f)
{
	tune(f);
	timer_cancel(&f->timer);
	loop_del(&f->outer);
	f->connected = true;
	flow_join(f);
}

/* ---- the beginning ------------------------------------------------------------------------- */

/* The name that stands for the address that the cell connected to. NULL with the reason. */
static const char *host_of(struct gate_sandbox *sb, int fd, uint16_t *ret_port,
			   const char **ret_why)
{
	struct sockaddr_storage local = { 0 };
	socklen_t len = sizeof(local);
	struct in6_addr a;
	const char *host = NULL;
	struct sockaddr_in6 v6;

	*ret_why = "no name was asked for";
	if (getsockname(fd, (struct sockaddr *)&local, &len) < 0 ||
	    !address_of((const struct sockaddr *)&local, &a))
		return NULL;
	memcpy(&v6, &local, sizeof(v6)); /* the port is at the same place in both families */
	*ret_port = ntohs(v6.sin6_port);
	host = host_map_host(&sb->hosts, &a);
	if (host && !host_map_allows(&sb->hosts, host, *ret_port))
		*ret_why = "no rule allows this port of it";
	return host;
}

static const char *limit_of(const struct gate_sandbox *sb)
{
	const struct gate_config *c = &sb->g->config;

	if (sb->numbers.live >= c->connections)
		return "the sandbox has too many connections";
	if (sb->g->n_flows >= sb->g->flows_max)
		return "the gate has too many connections";
	if (c->bytes && sb->numbers.up + sb->numbers.down > c->bytes)
		return "the sandbox has moved as many bytes as it may";
	return NULL;
}

void flow_begin(struct gate_sandbox *sb, int fd)
{
	struct gate *g = sb->g;
	uint16_t port = 0;
	const char *why = NULL, *host = host_of(sb, fd, &port, &why);
	bool allowed = host && host_map_allows(&sb->hosts, host, port);
	struct flow *f;

	if (allowed)
		why = limit_of(sb);
	f = allowed && !why ? calloc(1, sizeof(*f)) : NULL;
	if (!f) {
		gate_sandbox_event(sb, GATE_REFUSED, host ? host : "", port,
				   why ? why : "the gate is out of memory");
		reset(fd);
		fd_close(fd);
		return;
	}
	f->sandbox = sb;
	f->port = port;
	memcpy(f->host, host, strlen(host) + 1);
	f->index = gate_sandbox_index(sb, host, port);
	f->inner = (struct watch){ .fd = fd, .events = EPOLLIN, .fn = on_inner, .arg = f };
	f->outer.fd = -1;
	f->begun_ns = f->moved_ns = g->loop.now_ns;
	buf_init(&f->passed, SNIFF_MAX);
	f->timer = (struct timer){ .fn = on_timer, .arg = f };
	f->sniff_timer = (struct timer){ .fn = flow_sniff_late, .arg = f };
	LIST_INSERT_HEAD(&sb->flows, f, link);
	sb->numbers.live++;
	g->n_flows++;
	timer_set(&g->loop, &f->sniff_timer, f->begun_ns + SNIFF_NS);
	timer_set(&g->loop, &f->timer, f->begun_ns + RESOLVE_NS);
	if (loop_add(&g->loop, &f->inner, NULL) < 0)
		flow_fail(f, "the gate is out of descriptors");
	else
		dial_begin(f);
}
