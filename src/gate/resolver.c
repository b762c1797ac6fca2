/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resolver.c - The resolver in a cell: names that are allowed have an address, others do not exist.
 *
 * Nothing that is asked here ever goes anywhere: a name that nobody may reach is no way to send a
 * message to its owner. Over UDP, and over TCP for those who insist.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/foreign.h"
#include "gate/box.h"
#include "gate/dns.h"
#include "gate/gate.h"

#define PER_EVENT 16
#define QUERIES_MAX 16u /* connections at a time */
#define QUERY_NS (5 * CLOCK_NS_PER_S)

static size_t answer_host(struct box *b, const uint8_t *msg, const struct dns_question *q,
			  uint8_t *out, size_t size)
{
	int index = names_index(&b->names, q->name);
	struct in_addr v4;
	struct in6_addr v6;

	if (index == -ENOENT)
		return 0;
	if (index < 0)
		return dns_answer(msg, q, DNS_SERVFAIL, NULL, 0, out, size);
	names_address4((size_t)index, &v4);
	names_address6((size_t)index, &v6);
	if (q->type == DNS_A)
		return dns_answer(msg, q, DNS_OK, &v4, sizeof(v4), out, size);
	if (q->type == DNS_AAAA && b->v6)
		return dns_answer(msg, q, DNS_OK, &v6, sizeof(v6), out, size);
	return dns_answer(msg, q, DNS_OK, NULL, 0, out, size);
}

/* Return: the length of the answer; 0: there is none. */
static size_t answer(struct box *b, const uint8_t *msg, size_t len, uint8_t *out, size_t size)
{
	struct dns_question q;
	int r = dns_parse(msg, len, &q);

	if (r == -EPROTO)
		return 0;
	if (r < 0) {
		q.wire_len = 12; /* without the question, which is not understood */
		return dns_answer(msg, &q, r == -EBADMSG ? DNS_FORMERR : DNS_NOTIMP, NULL, 0, out,
				  size);
	}
	b->numbers.asked++;
	size_t n = q.is_host ? answer_host(b, msg, &q, out, size) : 0;

	if (n > 0 || !dns_is_reverse(q.name))
		asked_note(&b->asked, q.name, n > 0);
	if (n > 0)
		return n;
	/* Before the answer: whoever reads the result of the code that asked knows it by then. */
	if (!dns_is_reverse(q.name))
		box_refuse(b, GATE_NAME_REFUSED, q.name, 0, "", "no rule allows this name");
	return dns_answer(msg, &q, DNS_NXDOMAIN, NULL, 0, out, size);
}

void resolver_udp(struct watch *w, uint32_t events)
{
	struct box *b = w->arg;
	uint8_t msg[DNS_MESSAGE_MAX], out[DNS_MESSAGE_MAX];

	(void)events;
	for (int i = 0; i < PER_EVENT; i++) {
		struct sockaddr_storage from;
		socklen_t len = sizeof(from);

		if (!bucket_take(&b->asks, clock_now_ns())) {
			box_rest(b);
			return;
		}
		ssize_t n = recvfrom(w->fd, msg, sizeof(msg), MSG_DONTWAIT,
				     (struct sockaddr *)&from, &len);

		if (n < 0)
			return;
		size_t m = answer(b, msg, (size_t)n, out, sizeof(out));

		if (m > 0)
			(void)!sendto(w->fd, out, m, MSG_DONTWAIT | MSG_NOSIGNAL,
				      (const struct sockaddr *)&from, len);
	}
}

/* ---- over TCP ------------------------------------------------------------------------------ */

struct query {
	struct box *box;
	struct query *prev, *next;
	struct watch watch;
	struct timer timer;
	uint8_t in[2 + DNS_MESSAGE_MAX];
	size_t have;
	struct deferred reaper;
};

static void reap(struct deferred *d)
{
	free(d->arg);
}

static void query_end(struct query *q)
{
	struct box *b = q->box;

	loop_del(&q->watch);
	q->watch.fd = fd_close(q->watch.fd);
	timer_cancel(&q->timer);
	if (q->prev)
		q->prev->next = q->next;
	else
		b->queries = q->next;
	if (q->next)
		q->next->prev = q->prev;
	b->n_queries--;
	q->reaper = (struct deferred){ .fn = reap, .arg = q };
	loop_defer(&b->g->loop, &q->reaper);
}

static void on_late(struct timer *t)
{
	query_end(t->arg);
}

/* Answers are small and few: one that the socket does not take at once ends it. */
static bool reply(struct query *q, size_t len)
{
	uint8_t out[2 + DNS_MESSAGE_MAX];
	size_t n = answer(q->box, q->in + 2, len, out + 2, sizeof(out) - 2);

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

		if (len > DNS_MESSAGE_MAX || !bucket_take(&q->box->asks, clock_now_ns())) {
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
	struct box *b = w->arg;
	_fd_ int fd = foreign_accept(w->fd, &b->stalled_ns);
	struct query *q = fd >= 0 && b->n_queries < QUERIES_MAX ? calloc(1, sizeof(*q)) : NULL;

	(void)events;
	if (fd == -ETIMEDOUT)
		loop_del(w);
	if (!q)
		return;
	*q = (struct query){ .box = b, .next = b->queries };
	q->watch = (struct watch){ .fd = TAKE_FD(fd), .events = EPOLLIN, .fn = on_query, .arg = q };
	q->timer = (struct timer){ .fn = on_late, .arg = q };
	if (q->next)
		q->next->prev = q;
	b->queries = q;
	b->n_queries++;
	timer_set(&b->g->loop, &q->timer, b->g->loop.now_ns + QUERY_NS);
	if (loop_add(&b->g->loop, &q->watch, NULL) < 0)
		query_end(q);
}

void resolver_close(struct box *b)
{
	while (b->queries)
		query_end(b->queries);
}
