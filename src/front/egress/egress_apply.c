/* SPDX-License-Identifier: Apache-2.0 */
/*
 * egress_apply.c - Bring the rules and the sockets of one sandbox to the gate.
 *
 * Pid 1 of the cell makes the missing sockets one after the other, then everything goes to the gate
 * in one message. The old rules hold until the gate answers; if a socket cannot be made (something
 * in the cell listens on that port), nothing has changed.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/foreign.h"
#include "front/egress/egress.h"
#include "front/egress/narrow.h"
#include "front/gate/gate_link.h"
#include "front/policy/egress_rules.h"
#include "front/sandbox/hooks.h"
#include "front/sandbox/sandbox.h"
#include "front/sandbox/sandboxes.h"
#include "front/secrets/secrets.h"
#include "front/support/refusal.h"

#define SOCKETS_DNS 2u

static void next_socket(struct egress *g);

static const struct egresses *egresses_of(const struct sandbox *s)
{
	return s->sandboxes->hooks->egress.part;
}

static struct egress *of_job(struct cell_command *job)
{
	return (struct egress *)((char *)job - offsetof(struct egress, job));
}

static void fail(struct egress *g, enum refusal_kind kind, const char *code, const char *hint,
		 const char *message)
{
	struct refusal why = { .kind = kind, .code = code, .hint = hint, .field = "egress" };

	why.retry_after_s = kind == REFUSAL_UNAVAILABLE ? 1 : 0;
	(void)snprintf(why.message, sizeof(why.message), "%.300s", message);
	egress_applied(g, &why);
}

/* ---- to the gate --------------------------------------------------------------------------- */

static void on_done(struct gate_call *c, const struct gate_msg *reply, int fd)
{
	struct egress *g = c->arg;

	(void)fd;
	if (reply->code < 0)
		fail(g, REFUSAL_UNAVAILABLE, "egress_failed", NULL,
		     "the gate did not take the rules");
	else
		egress_applied(g, NULL);
}

static int send_rules(struct egress *g, struct err *e)
{
	static struct egress_rules rules;
	struct gate_msg m = { .op = GATE_SET, .id = g->id };
	int fds[FD_PASS_MAX];
	size_t n = 1;
	json_t *asked = g->list;

	/* The policy may have changed since the request. */
	g->list = policy_narrowed(g->sandbox, asked);
	json_decref(asked);
	if (egress_rules(g->list, &rules, e) < 0)
		return e->code;
	for (size_t i = 0; g->sandbox->spec.fetcher && i < rules.n_rules; i++)
		rules.rules[i].flags |= GATE_INDEX;
	_fd_ int blob =
		fd_memfd("caisson-egress", rules.rules, rules.n_rules * sizeof(rules.rules[0]));

	if (blob < 0)
		return err_set(e, blob, "pack the rules");
	fds[0] = blob;
	for (size_t i = 0; i < ARRAY_SIZE(g->fds) && n < FD_PASS_MAX; i++)
		if (g->fds[i] >= 0)
			fds[n++] = g->fds[i];
	m.u.set = g->next;
	m.u.set.n_rules = (uint32_t)rules.n_rules;
	g->call.fn = on_done;
	g->call.arg = g;
	return gate_ask(egresses_of(g->sandbox)->gate, &g->call, &m, fds, n, e);
}

/* ---- certificates: of the gate, for hosts whose connections it decrypts; of the machine ------ */

static void on_trusted(struct trust *t, const char *problem)
{
	struct egress *g = t->arg;
	struct err e = { 0 };

	g->trusted = !problem;
	if (problem)
		fail(g, REFUSAL_UNAVAILABLE, "egress_failed", NULL, problem);
	else
		secrets_trust(g->sandbox);
	if (!problem && send_rules(g, &e) < 0)
		fail(g, REFUSAL_UNAVAILABLE, "egress_failed", NULL, e.msg);
}

/* @pem: of the gate's authority, or -1. */
static int begin_trust(struct egress *g, int pem, struct err *e)
{
	g->trust.done = on_trusted;
	g->trust.arg = g;
	return trust_begin(&g->trust, g->cell, egresses_of(g->sandbox)->secrets->roots, pem, e);
}

/* A cell that fetches packages calls an index of the operator's: it trusts what the machine trusts,
 * whatever its image does. */
static bool needs_roots(const struct egress *g)
{
	return g->sandbox->spec.fetcher && !g->trusted &&
	       egresses_of(g->sandbox)->secrets->roots >= 0;
}

/* The gate has made the certificate authority: the cell has to trust it before the rules hold. */
static void on_bound(struct gate_call *c, const struct gate_msg *reply, int fd)
{
	struct egress *g = c->arg;
	struct err e = { 0 };
	int r = -EINVAL;

	if (reply->code < 0 || foreign_check(fd, FOREIGN_MEMORY) < 0)
		(void)err_say(&e, r, "the gate did not take the secrets");
	else if (g->trusted)
		r = send_rules(g, &e);
	else
		r = begin_trust(g, fd, &e);
	if (r < 0)
		fail(g, REFUSAL_UNAVAILABLE, "egress_failed", NULL, e.msg);
}

static int send_binds(struct egress *g, struct err *e)
{
	struct gate_bind binds[GATE_BINDS_MAX];
	struct gate_msg m = { .op = GATE_BIND, .id = g->id };

	m.u.n_binds = (uint32_t)secrets_binds(g->sandbox, binds);
	_fd_ int blob = fd_memfd("caisson-binds", binds, m.u.n_binds * sizeof(binds[0]));

	if (blob < 0)
		return err_set(e, blob, "pack the secrets");
	g->call.fn = on_bound;
	g->call.arg = g;
	return gate_ask(egresses_of(g->sandbox)->gate, &g->call, &m, &blob, 1, e);
}

/* ---- sockets of the cell ------------------------------------------------------------------- */

static void on_socket(struct cell_command *job, int pid, int *fds, size_t n_fds)
{
	struct egress *g = of_job(job);

	(void)pid;
	if (n_fds != 1) {
		fail(g, REFUSAL_UNAVAILABLE, "egress_failed", NULL, "the cell sent no socket");
		return;
	}
	g->fds[g->at++] = TAKE_FD(fds[0]);
	next_socket(g);
}

static void on_no_socket(struct cell_command *job, const struct init_failed *f)
{
	struct egress *g = of_job(job);
	char text[128];
	unsigned int port = g->at < SOCKETS_DNS ? 53 : g->next.ports[g->at - SOCKETS_DNS];

	(void)snprintf(text, sizeof(text), "cannot listen on port %u of the sandbox: %s", port,
		       strerror(f->error));
	if (f->error == EADDRINUSE)
		fail(g, REFUSAL_CONFLICT, "port_in_use",
		     "end what listens on that port in the sandbox", text);
	else
		fail(g, REFUSAL_UNAVAILABLE, "egress_failed", NULL, text);
}

static bool is_wanted(const struct egress *g, size_t at)
{
	return at < SOCKETS_DNS ? g->next.dns : g->next.fresh >> (at - SOCKETS_DNS) & 1u;
}

static int tell_gate(struct egress *g, struct err *e)
{
	if (secrets_look(g->sandbox, g->list))
		return send_binds(g, e);
	return needs_roots(g) ? begin_trust(g, -1, e) : send_rules(g, e);
}

/* Make the next socket that the gate does not have; after the last one, tell the gate. */
static void next_socket(struct egress *g)
{
	static const enum init_listen_kind dns[SOCKETS_DNS] = { INIT_LISTEN_DNS_UDP,
								INIT_LISTEN_DNS_TCP };
	struct err e = { 0 };
	int r;

	while (g->at < SOCKETS_DNS + g->next.n_ports && !is_wanted(g, g->at))
		g->at++;
	if (g->at == SOCKETS_DNS + g->next.n_ports) {
		r = tell_gate(g, &e);
	} else {
		bool is_dns = g->at < SOCKETS_DNS;

		g->job = (struct cell_command){ .started = on_socket, .failed = on_no_socket };
		r = cell_listen(g->cell, &g->job, is_dns ? dns[g->at] : INIT_LISTEN_TCP,
				is_dns ? 0 : g->next.ports[g->at - SOCKETS_DNS], &e);
	}
	if (r < 0)
		fail(g, REFUSAL_UNAVAILABLE, "egress_failed", NULL, e.msg);
}

static bool has_port(const struct gate_set *set, uint16_t port)
{
	for (size_t i = 0; i < set->n_ports; i++)
		if (set->ports[i] == port)
			return true;
	return false;
}

void egress_apply(struct egress *g, json_t *list)
{
	static struct egress_rules rules;
	struct err e = { 0 };

	g->changing = true;
	g->list = json_incref(list);
	g->at = 0;
	for (size_t i = 0; i < ARRAY_SIZE(g->fds); i++)
		g->fds[i] = -1;
	if (egress_rules(list, &rules, &e) < 0) {
		fail(g, REFUSAL_INVALID, "invalid_value", NULL, e.msg);
		return;
	}
	g->next = (struct gate_set){ .n_ports = (uint32_t)rules.n_ports,
				     .dns = g->state != EGRESS_ON };
	memcpy(g->next.ports, rules.ports, sizeof(g->next.ports));
	for (size_t i = 0; i < rules.n_ports; i++)
		if (g->state != EGRESS_ON || !has_port(&g->held, rules.ports[i]))
			g->next.fresh |= 1u << i;
	next_socket(g);
}
