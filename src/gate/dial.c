/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dial.c - Connect a flow to its server: resolve the name, judge the addresses and try them; or ask
 * the proxy.
 *
 * The gate connects to exactly the addresses that it judged (address.h): nothing is resolved twice.
 * It tries them one after the other. For a fetcher, a package index may be at any address except
 * the forbidden ones: the operator named it. With a proxy the gate looks up the name of the proxy,
 * and does not judge its addresses: the operator chose it.
 */
#include "gate/flow.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "gate/gate.h"
#include "gate/gate_sandbox.h"

#define CONNECT_NS (5 * CLOCK_NS_PER_S) /* for each address but the last */

static void try_next(struct flow *f);
static void fail_proxy(struct flow *f, const char *what);

/* Read the proxy's answer to its last byte and not further: the server's bytes follow. */
static void on_proxy(struct flow *f)
{
	char head[8192];
	ssize_t n = recv(f->outer.fd, head, sizeof(head), MSG_PEEK | MSG_DONTWAIT);
	int r = n > 0 ? proxy_answer(head, (size_t)n) : -ECONNRESET;

	if ((n < 0 && errno == EAGAIN) || r == 0)
		return;
	if (r < 0) {
		fail_proxy(f, r == -ECONNREFUSED ? "refused it" : "broke the connection off");
		return;
	}
	(void)!recv(f->outer.fd, head, (size_t)r, MSG_DONTWAIT);
	flow_connected(f);
}

static void ask_proxy(struct flow *f)
{
	char text[1536];
	size_t n =
		proxy_request(&f->sandbox->g->config.proxy, f->host, f->port, text, sizeof(text));

	f->asked_proxy = true;
	if (n == 0 || send(f->outer.fd, text, n, MSG_NOSIGNAL) != (ssize_t)n)
		fail_proxy(f, "could not be asked");
	else
		loop_mod(&f->outer, EPOLLIN);
}

static void on_outer(struct watch *w, uint32_t events)
{
	struct flow *f = w->arg;
	int error = 0;
	socklen_t len = sizeof(error);

	(void)events;
	if (f->asked_proxy) {
		on_proxy(f);
		return;
	}
	if (getsockopt(w->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		error = errno;
	if (error) {
		f->error = error;
		try_next(f);
	} else if (f->by_proxy) {
		ask_proxy(f);
	} else {
		flow_connected(f);
	}
}

/* 0: the attempt is under way; or an errno. */
static int dial(struct flow *f, const struct in6_addr *a, uint16_t port)
{
	struct gate *g = f->sandbox->g;
	struct sockaddr_storage to;
	socklen_t len = address_to(a, port, &to);

	f->outer = (struct watch){ .events = EPOLLOUT, .fn = on_outer, .arg = f };
	f->outer.fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (f->outer.fd < 0)
		return errno;
	if (connect(f->outer.fd, (const struct sockaddr *)&to, len) < 0 && errno != EINPROGRESS)
		return errno;
	f->address = *a;
	f->has_address = true;
	timer_set(&g->loop, &f->timer, g->loop.now_ns + CONNECT_NS);
	return loop_add(&g->loop, &f->outer, NULL) < 0 ? EMFILE : 0;
}

static const char *refusal_of(const struct flow *f, const struct in6_addr *a)
{
	static const struct prefix any = { 0 };
	const struct gate_config *c = &f->sandbox->g->config;

	if (f->index)
		return address_refusal(a, &any, 1);
	const char *why = address_refusal(a, c->private_nets, c->n_private);

	if (!why && !address_is_allowed(a, c->private_nets, c->n_private) && address_is_ours(a))
		why = "an address of this machine";
	return why;
}

static void fail_proxy(struct flow *f, const char *what)
{
	char why[GATE_REASON_MAX];

	(void)snprintf(why, sizeof(why), "the proxy %.50s %s", f->sandbox->g->config.proxy.host,
		       what);
	flow_fail(f, why);
}

static void give_up(struct flow *f)
{
	if (f->by_proxy)
		fail_proxy(f, "could not be reached");
	else if (f->error)
		flow_fail(f, strerror(f->error));
	else
		flow_refuse_soon(f, f->refusal ? f->refusal : "it has no address");
}

/* Try the next allowed address. Proxy addresses are not judged: the operator chose them. */
static void try_next(struct flow *f)
{
	const struct proxy *proxy = &f->sandbox->g->config.proxy;

	loop_del(&f->outer);
	f->outer.fd = fd_close(f->outer.fd);
	timer_cancel(&f->timer);
	if (f->asked_proxy) {
		fail_proxy(f, "did not answer in time");
		return;
	}
	while (f->next_address < f->lookup.n) {
		const struct in6_addr *a = &f->lookup.addresses[f->next_address++];
		const char *why = f->by_proxy ? NULL : refusal_of(f, a);

		if (why) {
			(void)snprintf(f->refusal_text, sizeof(f->refusal_text),
				       "the name leads to %s", why);
			f->refusal = f->refusal_text;
			continue;
		}
		f->error = dial(f, a, f->by_proxy ? proxy->port : f->port);
		if (f->error == 0)
			return;
		loop_del(&f->outer);
		f->outer.fd = fd_close(f->outer.fd);
	}
	give_up(f);
}

static void on_resolved(struct lookup *l, int code)
{
	struct flow *f = l->arg;

	if (code < 0 && f->by_proxy)
		fail_proxy(f, code == -ENOENT ? "does not exist" : "could not be resolved");
	else if (code == -ENOENT)
		flow_fail(f, "the name does not exist");
	else if (code < 0)
		flow_fail(f, "the name could not be resolved");
	else
		try_next(f);
}

void dial_begin(struct flow *f)
{
	struct gate *g = f->sandbox->g;
	const struct proxy *proxy = &g->config.proxy;

	f->lookup = (struct lookup){ .done = on_resolved, .arg = f };
	if (f->index && f->index->n > 0) {
		f->lookup.n = f->index->n;
		memcpy(f->lookup.addresses, f->index->addresses, sizeof(f->index->addresses));
		try_next(f);
		return;
	}
	f->by_proxy = proxy_wanted(proxy, f->host);
	if (!f->by_proxy) {
		lookup_begin(g->lookups, &f->lookup, f->host);
	} else if (!proxy->is_address) {
		lookup_begin(g->proxies, &f->lookup, proxy->host);
	} else {
		f->lookup.addresses[0] = proxy->address;
		f->lookup.n = 1;
		try_next(f);
	}
}

void dial_late(struct flow *f)
{
	f->error = ETIMEDOUT;
	try_next(f);
}
