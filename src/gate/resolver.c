/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resolver.c - The DNS resolver in a cell: names that are allowed have an address, others do not
 * exist.
 *
 * No query is passed on: code cannot send a message to the owner of a name that it may not reach.
 * Over UDP and TCP.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/foreign.h"
#include "gate/dns.h"
#include "gate/gate.h"
#include "gate/gate_sandbox.h"

#define PER_EVENT 16
#define QUERIES_MAX 16u /* connections at a time */
#define QUERY_NS (5 * CLOCK_NS_PER_S)

void resolver_note(struct gate_sandbox *sb, const char *host, bool allowed)
{
	struct gate_name name = { .count = 0 }, *larger;
	size_t at = 0;

	while (at < sb->n_recent && strcmp(sb->recent[at].host, host) != 0)
		at++;
	if (at < sb->n_recent) {
		name = sb->recent[at];
	} else if (at == GATE_NAMES_SHOWN) {
		at--; /* forget the name that was not requested for the longest time */
	} else {
		larger = reallocarray(sb->recent, at + 1, sizeof(*larger));
		if (!larger)
			return;
		sb->recent = larger;
		sb->n_recent++;
	}
	memmove(sb->recent + 1, sb->recent, at * sizeof(name));
	(void)snprintf(name.host, sizeof(name.host), "%s", host);
	name.count++;
	name.allowed = allowed;
	sb->recent[0] = name;
}

static size_t answer_host(struct gate_sandbox *sb, const uint8_t *msg, const struct dns_question *q,
			  uint8_t *out, size_t size)
{
	int index = host_map_index(&sb->hosts, q->name);
	struct in_addr v4;
	struct in6_addr v6;

	if (index == -ENOENT)
		return 0;
	if (index < 0)
		return dns_answer(msg, q, DNS_SERVFAIL, NULL, 0, out, size);
	host_map_address4((size_t)index, &v4);
	host_map_address6((size_t)index, &v6);
	if (q->type == DNS_A)
		return dns_answer(msg, q, DNS_OK, &v4, sizeof(v4), out, size);
	if (q->type == DNS_AAAA && sb->v6)
		return dns_answer(msg, q, DNS_OK, &v6, sizeof(v6), out, size);
	return dns_answer(msg, q, DNS_OK, NULL, 0, out, size);
}

/* Return: the length of the answer; 0: none. */
static size_t answer(struct gate_sandbox *sb, const uint8_t *msg, size_t len, uint8_t *out,
		     size_t size)
{
	struct dns_question q;
	int r = dns_parse(msg, len, &q);

	if (r == -EPROTO)
		return 0;
	if (r < 0) {
		q.wire_len = 12; /* without the question, which cannot be read */
		return dns_answer(msg, &q, r == -EBADMSG ? DNS_FORMERR : DNS_NOTIMP, NULL, 0, out,
				  size);
	}
	sb->numbers.asked++;
	size_t n = q.is_host ? answer_host(sb, msg, &q, out, size) : 0;

	if (n > 0 || !dns_is_reverse(q.name))
		resolver_note(sb, q.name, n > 0);
	if (n > 0)
		return n;
	/* Before the answer: the result of the code that sent the query has the refusal then. */
	if (!dns_is_reverse(q.name))
		gate_sandbox_event(sb, GATE_NAME_REFUSED, q.name, 0, "no rule allows this name");
	return dns_answer(msg, &q, DNS_NXDOMAIN, NULL, 0, out, size);
}

void resolver_udp(struct watch *w, uint32_t events)
{
	struct gate_sandbox *sb = w->arg;
	uint8_t msg[DNS_MESSAGE_MAX], out[DNS_MESSAGE_MAX];

	(void)events;
	for (int i = 0; i < PER_EVENT; i++) {
		struct sockaddr_storage from;
		socklen_t len = sizeof(from);

		if (!rate_limit_take(&sb->asks, clock_now_ns())) {
			gate_sandbox_pause(sb);
			return;
		}
		ssize_t n = recvfrom(w->fd, msg, sizeof(msg), MSG_DONTWAIT,
				     (struct sockaddr *)&from, &len);

		if (n < 0)
			return;
		size_t m = answer(sb, msg, (size_t)n, out, sizeof(out));

		if (m > 0)
			(void)!sendto(w->fd, out, m, MSG_DONTWAIT | MSG_NOSIGNAL,
				      (const struct sockaddr *)&from, len);
	}
}

/* ---- over TCP ------------------------------------------------------------------------------ */

struct query {
	struct gate_sandbox *sandbox;
	LIST_ENTRY(query) link;
	struct watch watch;
	struct timer timer;
	uint8_t in[2 + DNS_MESSAGE_MAX];
	size_t have;
	struct deferred reaper;
};

static void query_end(struct query *q)
{
	struct gate_sandbox *sb = q->sandbox;

	loop_del(&q->watch);
	q->watch.fd = fd_close(q->watch.fd);
	timer_cancel(&q->timer);
	LIST_REMOVE(q, link);
	sb->n_queries--;
	loop_free_later(&sb->g->loop, &q->reaper, q);
}

static void on_late(struct timer *t)
{
	query_end(t->arg);
}

/* Answers are small and few: one that the socket does not take at once ends the connection. */
static bool reply(struct query *q, size_t len)
{
	uint8_t out[2 + DNS_MESSAGE_MAX];
	size_t n = answer(q->sandbox, q->in + 2, len, out + 2, sizeof(out) - 2);

	out[0] = (uint8_t)(n >> 8);
	out[1] = (uint8_t)n;
	memmove(q->in, q->in + 2 + len, q->have - 2 - len);
	q->have -= 2 + len;
	return n > 0 &&
	       send(q->watch.fd, out, n + 2, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)n + 2;
}

static void on_query(struct watch *w, uint32_t events)
{
	struct query *q = w->arg;
	ssize_t n = recv(w->fd, q->in + q->have, sizeof(q->in) - q->have, MSG_DONTWAIT);

	(void)events;
	if (n <= 0) {
		if (n == 0 || errno != EAGAIN)
			query_end(q);
		return;
	}
	q->have += (size_t)n;
	while (q->have >= 2) {
		size_t len = (size_t)(q->in[0] << 8 | q->in[1]);

		if (len > DNS_MESSAGE_MAX || !rate_limit_take(&q->sandbox->asks, clock_now_ns())) {
			query_end(q);
			return;
		}
		if (q->have < 2 + len)
			return;
		if (!reply(q, len)) {
			query_end(q);
			return;
		}
	}
}

void resolver_tcp(struct watch *w, uint32_t events)
{
	struct gate_sandbox *sb = w->arg;
	_fd_ int fd = foreign_accept(w->fd, &sb->stalled_ns);
	struct query *q = fd >= 0 && sb->n_queries < QUERIES_MAX ? calloc(1, sizeof(*q)) : NULL;

	(void)events;
	if (fd == -ETIMEDOUT)
		loop_del(w);
	if (!q)
		return;
	q->sandbox = sb;
	q->watch = (struct watch){ .fd = TAKE_FD(fd), .events = EPOLLIN, .fn = on_query, .arg = q };
	q->timer = (struct timer){ .fn = on_late, .arg = q };
	LIST_INSERT_HEAD(&sb->queries, q, link);
	sb->n_queries++;
	timer_set(&sb->g->loop, &q->timer, sb->g->loop.now_ns + QUERY_NS);
	if (loop_add(&sb->g->loop, &q->watch, NULL) < 0)
		query_end(q);
}

void resolver_close(struct gate_sandbox *sb)
{
	while (!LIST_EMPTY(&sb->queries))
		query_end(LIST_FIRST(&sb->queries));
}
