/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flow.c - The way of a connection to the point where its bytes move.
 *
 * Theory of operation. The address that the cell connected to is the name. While that is resolved
 * and connected to outside, the first bytes of the client are looked at with MSG_PEEK: SO_RCVLOWAT
 * tells the kernel to wake us only for more than we have seen. Both have to succeed; then a path
 * takes over. No byte of the client leaves before, and bytes of the server only where a server may
 * speak first.
 *
 * One exception. A word without the end of its line can be the method of a request, or a whole
 * message of a protocol whose client now waits. Where another protocol may be spoken it goes on,
 * and is remembered: what comes next is looked at together with it, before it goes on, until it is
 * known to be another protocol. If a request comes of it, it is refused: no server has had a whole
 * line of it.
 *
 * A refusal is told in the words of the protocol when that is known: a TLS alert, an HTTP 403 that
 * names the rule, otherwise a reset. Whoever says nothing is not waited for.
 */
#include "gate/flow.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "gate/box.h"
#include "gate/dial.h"
#include "gate/gate.h"

#define RESOLVE_NS (10 * CLOCK_NS_PER_S)
#define HELLO_NS (30 * CLOCK_NS_PER_S)  /* for first bytes that are waited for */
#define WORDS_NS (50 * CLOCK_NS_PER_MS) /* for first bytes of one who is to be refused */
#define IDLE_NS (3600 * CLOCK_NS_PER_S)

/* ---- the end ------------------------------------------------------------------------------- */

static void reap(struct deferred *d)
{
	free(d->arg);
}

static void reset(int fd)
{
	static const struct linger hard = { .l_onoff = 1 };

	if (fd >= 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
}

/* Everything but the telling. @hard: whoever still speaks hears of it. */
static void dismantle(struct flow *f, bool hard)
{
	struct box *b = f->box;

	f->over = true;
	timer_cancel(&f->timer);
	timer_cancel(&f->hello_timer);
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
	if (f->prev)
		f->prev->next = f->next;
	else
		b->flows = f->next;
	if (f->next)
		f->next->prev = f->prev;
	b->numbers.live--;
	b->g->n_flows--;
	f->reaper = (struct deferred){ .fn = reap, .arg = f };
	loop_defer(&b->g->loop, &f->reaper);
}

static void fill_event(const struct flow *f, enum gate_event_kind kind, const char *why,
		       struct gate_event *ev)
{
	*ev = (struct gate_event){ .kind = kind, .port = f->port, .up = f->up, .down = f->down };
	(void)snprintf(ev->host, sizeof(ev->host), "%s", f->host);
	(void)snprintf(ev->why, sizeof(ev->why), "%s", why ? why : "");
	if (f->has_address)
		address_text(&f->address, ev->address);
}

static void tell(struct flow *f, enum gate_event_kind kind, const char *why)
{
	struct gate_event ev;

	fill_event(f, kind, why, &ev);
	box_tell(f->box, &ev);
}

void flow_end(struct flow *f, const char *why)
{
	if (f->over)
		return;
	if (f->path)
		tell(f, GATE_CLOSED, why);
	dismantle(f, why != NULL);
}

void flow_fail(struct flow *f, const char *why)
{
	tell(f, GATE_FAILED, why);
	dismantle(f, true);
}

bool flow_moved(struct flow *f, uint64_t up, uint64_t down)
{
	struct box *b = f->box;

	f->up += up;
	f->down += down;
	f->moved_ns = b->g->loop.now_ns;
	b->numbers.up += up;
	b->numbers.down += down;
	if (b->g->config.bytes == 0 || b->numbers.up + b->numbers.down <= b->g->config.bytes)
		return true;
	flow_end(f, "the sandbox has moved as many bytes as it may");
	return false;
}

/* ---- refusing ------------------------------------------------------------------------------ */

/* Fatal, access_denied (49): the one that means a rule. */
static const uint8_t tls_denied[] = { 21, 3, 1, 0, 2, 2, 49 };

/* HELLO_TLS, HELLO_HTTP, or HELLO_OTHER. */
static enum hello_kind looks_like(const struct hello *h)
{
	return h->kind == HELLO_BAD || h->kind == HELLO_MORE ? h->like : h->kind;
}

static void put_words(struct flow *f, const char *why)
{
	static char trash[HELLO_PEEK_MAX];
	char body[512], head[1024];

	/* What is not read would make the kernel cut the answer off. */
	while (recv(f->inner.fd, trash, sizeof(trash), MSG_DONTWAIT) == (ssize_t)sizeof(trash))
		;
	if (looks_like(&f->hello) == HELLO_TLS) {
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

static bool has_words(const struct flow *f)
{
	return f->hello.kind == HELLO_TLS || f->hello.kind == HELLO_HTTP ||
	       (f->hello.kind == HELLO_BAD && f->hello.like != HELLO_OTHER);
}

void flow_refuse(struct flow *f, const char *why)
{
	bool words = has_words(f);

	if (f->over)
		return;
	tell(f, GATE_REFUSED, why);
	if (words)
		put_words(f, why);
	dismantle(f, !words);
}

void flow_refuse_soon(struct flow *f, const char *why)
{
	if (has_words(f) || f->hello.kind == HELLO_OTHER) {
		flow_refuse(f, why);
		return;
	}
	f->doom = why;
	timer_set(&f->box->g->loop, &f->timer, f->box->g->loop.now_ns + WORDS_NS);
}

/* ---- both are there ------------------------------------------------------------------------ */

/*
 * On a port where servers may speak first nobody waits for the client's first bytes: the path
 * begins, and has them looked at before the first of them goes on.
 */
static void join(struct flow *f)
{
	if (!f->connected || f->doom || (f->may == 0 && (f->seen > 0 || flow_waits(f))))
		return;
	loop_del(&f->inner);
	loop_del(&f->outer);
	timer_cancel(&f->hello_timer);
	f->moved_ns = f->box->g->loop.now_ns;
	timer_set(&f->box->g->loop, &f->timer, f->moved_ns + IDLE_NS);
	f->path = flow_choose(f);
	f->box->numbers.opened++;
	tell(f, GATE_OPENED, NULL);
	f->path->begin(f);
}

/* ---- the first bytes ----------------------------------------------------------------------- */

static bool contradicts(const struct flow *f)
{
	const struct hello *h = &f->hello;
	size_t n = strlen(h->host);

	if (n == 0)
		return false;
	if (h->host[n - 1] == '.')
		n--;
	if (strlen(f->host) != n || memcmp(f->host, h->host, n) != 0)
		return true;
	return h->port && h->port != f->port;
}

static void set_lowat(struct flow *f, int n)
{
	(void)setsockopt(f->inner.fd, SOL_SOCKET, SO_RCVLOWAT, &n, sizeof(n));
}

/* So many bytes may go on, and whoever moves them looks at the next ones. */
static void let(struct flow *f, size_t n)
{
	f->may = n;
	f->seen = 0;
	set_lowat(f, 1);
	if (!f->path) {
		loop_del(&f->inner);
		join(f);
	}
}

static void judge(struct flow *f)
{
	char why[GATE_REASON_MAX];

	if (f->doom) {
		flow_refuse(f, f->doom);
	} else if (f->hello.kind == HELLO_BAD) {
		flow_refuse(f, f->hello.why);
	} else if (contradicts(f)) {
		(void)snprintf(why, sizeof(why), "%s names another host: %.50s",
			       f->hello.kind == HELLO_TLS ? "the TLS server name" : "the HTTP host",
			       f->hello.host);
		flow_refuse(f, why);
	} else if (f->hello.kind != HELLO_HTTP && f->port == 80) {
		flow_refuse(f, "port 80 is for plain HTTP, and this is another protocol");
	} else if (f->hello.kind == HELLO_OTHER && flow_needs_http(f)) {
		flow_refuse(f, "only some HTTP requests to this host are allowed");
	} else {
		f->judged = true;
		buf_free(&f->passed);
		let(f, SIZE_MAX);
	}
}

/* Not enough to be judged by. @p: all that the client has said; @n: of it, what has not gone on
 * yet. */
static void wait_for_more(struct flow *f, const uint8_t *p, size_t n)
{
	if (f->hello.like == HELLO_OTHER && !flow_needs_http(f)) {
		if (buf_append(&f->passed, p + f->passed.len, n) < 0)
			flow_end(f, "the gate is out of memory");
		else
			let(f, n);
	} else if (f->hello.like == HELLO_OTHER && f->hello.odd) {
		f->hello.kind = HELLO_OTHER;
		judge(f);
	} else if (n > f->seen) {
		f->seen = n;
		set_lowat(f, (int)n + 1); /* woken for more than this, or for the end */
	} else {
		f->hello.kind = HELLO_BAD;
		f->hello.why = "its first message is cut off";
		judge(f);
	}
}

void flow_look(struct flow *f)
{
	static uint8_t peeked[HELLO_PEEK_MAX];
	size_t passed = f->passed.len; /* less than the maximum: hello_look() has refused what is
					  more */
	ssize_t n = recv(f->inner.fd, peeked + passed, sizeof(peeked) - passed,
			 MSG_PEEK | MSG_DONTWAIT);

	if (n < 0) {
		if (errno != EAGAIN)
			flow_end(f, "the client broke it off");
		return;
	}
	if (n == 0 && f->seen == 0 && flow_needs_http(f)) {
		flow_end(f, NULL); /* connected, and closed without a word */
		return;
	}
	memcpy(peeked, buf_str(&f->passed), passed);
	hello_look(peeked, passed + (size_t)n, &f->hello);
	if (n == 0) {
		f->hello.kind = HELLO_OTHER; /* and never will be anything */
	} else if (passed > 0 && looks_like(&f->hello) == HELLO_HTTP) {
		f->hello.kind = HELLO_BAD;
		f->hello.why = "the first line of its HTTP request came in pieces";
	} else if (f->hello.kind == HELLO_MORE) {
		wait_for_more(f, peeked, (size_t)n);
		return;
	}
	judge(f);
}

static void on_inner(struct watch *w, uint32_t events)
{
	(void)events;
	flow_look(w->arg);
}

/* Nothing, or half a head that does not go on. */
static void on_hello_late(struct timer *t)
{
	struct flow *f = t->arg;

	if (f->may > 0)
		return; /* it has spoken, and waits for the other end */
	if (f->seen == 0) {
		flow_end(f, "the client said nothing");
		return;
	}
	f->hello.kind = HELLO_BAD;
	f->hello.why = "its first message did not come in time";
	judge(f);
}

/* ---- other rules --------------------------------------------------------------------------- */

void flow_judge_again(struct flow *f)
{
	const struct box *b = f->box;
	const char *why = NULL;

	if (!names_allow(&b->names, f->host, f->port))
		why = "the rules do not allow it any more";
	else if (f->path)
		why = f->path->objection(f);
	else if (f->may > 0 && f->hello.kind != HELLO_TLS && f->hello.kind != HELLO_HTTP &&
		 flow_needs_http(f))
		why = "only some HTTP requests to this host are allowed";
	if (why && f->path) {
		box_refuse(f->box, GATE_REFUSED, f->host, f->port, "", why);
		flow_end(f, why);
	} else if (why) {
		flow_refuse(f, why);
	}
}

/* ---- the other end ------------------------------------------------------------------------- */

static void on_timer(struct timer *t)
{
	struct flow *f = t->arg;
	uint64_t now = f->box->g->loop.now_ns;

	if (f->doom) {
		flow_refuse(f, f->doom);
	} else if (!f->connected) {
		dial_late(f);
	} else if (now < f->moved_ns + IDLE_NS) {
		timer_set(&f->box->g->loop, t, f->moved_ns + IDLE_NS);
	} else {
		flow_end(f, "no byte moved for an hour");
	}
}

/*
 * Nothing waits here for more of a message. And what stays on this machine, a proxy or a service
 * that the operator lets through, has no need of an algorithm that paces: see cell/stage_net.c.
 * Elsewhere the host's choice holds.
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
	join(f);
}

/* ---- the beginning ------------------------------------------------------------------------- */

/* Whom it is for: where it was connected to. NULL with the reason. */
static const char *meant(struct box *b, int fd, uint16_t *ret_port, const char **ret_why)
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
	host = names_host(&b->names, &a);
	if (host && !names_allow(&b->names, host, *ret_port))
		*ret_why = "no rule allows this port of it";
	return host;
}

static const char *limit_of(const struct box *b)
{
	const struct gate_config *c = &b->g->config;

	if (b->numbers.live >= c->connections)
		return "the sandbox has too many connections";
	if (b->g->n_flows >= b->g->flows_max)
		return "the gate has too many connections";
	if (c->bytes && b->numbers.up + b->numbers.down > c->bytes)
		return "the sandbox has moved as many bytes as it may";
	return NULL;
}

void flow_begin(struct box *b, int fd)
{
	struct gate *g = b->g;
	uint16_t port = 0;
	const char *why = NULL, *host = meant(b, fd, &port, &why);
	bool allowed = host && names_allow(&b->names, host, port);
	struct flow *f;

	if (allowed)
		why = limit_of(b);
	f = allowed && !why ? calloc(1, sizeof(*f)) : NULL;
	if (!f) {
		box_refuse(b, GATE_REFUSED, host ? host : "", port, "",
			   why ? why : "the gate is out of memory");
		reset(fd);
		fd_close(fd);
		return;
	}
	f->box = b;
	f->port = port;
	memcpy(f->host, host, strlen(host) + 1);
	f->index = box_index(b, host, port);
	f->inner = (struct watch){ .fd = fd, .events = EPOLLIN, .fn = on_inner, .arg = f };
	f->outer.fd = -1;
	f->begun_ns = f->moved_ns = g->loop.now_ns;
	buf_init(&f->passed, HELLO_PEEK_MAX);
	f->timer = (struct timer){ .fn = on_timer, .arg = f };
	f->hello_timer = (struct timer){ .fn = on_hello_late, .arg = f };
	f->next = b->flows;
	if (f->next)
		f->next->prev = f;
	b->flows = f;
	b->numbers.live++;
	g->n_flows++;
	timer_set(&g->loop, &f->hello_timer, f->begun_ns + HELLO_NS);
	timer_set(&g->loop, &f->timer, f->begun_ns + RESOLVE_NS);
	if (loop_add(&g->loop, &f->inner, NULL) < 0)
		flow_fail(f, "the gate is out of descriptors");
	else
		dial_begin(f);
}
