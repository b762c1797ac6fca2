/* SPDX-License-Identifier: Apache-2.0 */
/*
 * egress.c - Rules and sockets of one sandbox, on their way to the gate.
 *
 * There is one change at a time: pid 1 makes the missing sockets one after the other, then
 * everything goes to the gate in one message. The old rules hold until the gate answers; if a
 * socket cannot be made (something in the cell listens on that port), nothing has changed.
 */
#include "front/egress/egress.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/foreign.h"
#include "front/gate/gate_link.h"
#include "front/policy/egress_rules.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/hooks.h"
#include "front/sandbox/sandbox.h"
#include "front/sandbox/sandboxes.h"
#include "front/secrets/secrets.h"
#include "front/support/log.h"
#include "front/support/metrics.h"

#define SOCKETS_DNS 2u
#define RETRY_NS CLOCK_NS_PER_S

static const struct egresses *egresses_of(const struct sandbox *s)
{
	return s->sandboxes->hooks->egress.part;
}

static void next_socket(struct egress *g);
static void next_change(struct egress *g);

static struct egress *of_job(struct cell_command *job)
{
	return (struct egress *)((char *)job - offsetof(struct egress, job));
}

bool egress_ready(const struct sandbox *s)
{
	const struct egress *g = s->egress;

	if (json_array_size(s->spec.egress) == 0)
		return true;
	return g && g->state == EGRESS_ON && g->cell == s->cell;
}

/* ---- the end of a change ------------------------------------------------------------------- */

static void close_fds(struct egress *g)
{
	for (size_t i = 0; i < ARRAY_SIZE(g->fds); i++)
		g->fds[i] = foreign_close(g->fds[i]);
}

static void finish(struct egress *g, const struct refusal *why)
{
	struct sandbox *s = g->sandbox;
	struct egress_change *w = g->change;

	close_fds(g);
	g->changing = false;
	g->change = NULL;
	if (!why) {
		g->state = EGRESS_ON;
		g->held = g->next;
		if (s->spec.egress != g->list) {
			json_decref(s->spec.egress);
			s->spec.egress = json_incref(g->list);
		}
	} else if (g->state == EGRESS_MAKING) {
		g->state = EGRESS_OFF;
	}
	json_decref(g->list);
	g->list = NULL;
	if (why && !w)
		timer_after(s->sandboxes->loop, &g->retry, RETRY_NS);
	if (w)
		w->done(w, why);
	else if (why && g->installing)
		sandbox_no_cell(s, why);
	else
		sandbox_step(s);
	next_change(g);
}

static void fail(struct egress *g, enum refusal_kind kind, const char *code, const char *hint,
		 const char *message)
{
	struct refusal why = { .kind = kind, .code = code, .hint = hint, .field = "egress" };

	why.retry_after_s = kind == REFUSAL_UNAVAILABLE ? 1 : 0;
	(void)snprintf(why.message, sizeof(why.message), "%.300s", message);
	finish(g, &why);
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
		finish(g, NULL);
}

static int send_rules(struct egress *g, struct err *e)
{
	static struct egress_rules rules;
	struct gate_msg m = { .op = GATE_SET, .id = g->id };
	int fds[FD_PASS_MAX];
	size_t n = 1;

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

/* ---- hosts whose connections the gate decrypts --------------------------------------------- */

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

/* The gate has made the certificate authority: the cell has to trust it before the rules hold. */
static void on_bound(struct gate_call *c, const struct gate_msg *reply, int fd)
{
	struct egress *g = c->arg;
	struct err e = { 0 };
	int r = -EINVAL;

	g->trust.done = on_trusted;
	g->trust.arg = g;
	if (reply->code < 0 || foreign_check(fd, FOREIGN_MEMORY) < 0)
		(void)err_say(&e, r, "the gate did not take the secrets");
	else if (g->trusted)
		r = send_rules(g, &e);
	else
		r = trust_begin(&g->trust, g->cell, egresses_of(g->sandbox)->secrets->roots, fd,
				&e);
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
		r = secrets_look(g->sandbox, g->list) ? send_binds(g, &e) : send_rules(g, &e);
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

static void begin(struct egress *g, json_t *list)
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

/* ---- life ---------------------------------------------------------------------------------- */

static void on_retry(struct timer *t)
{
	struct egress *g = t->arg;

	sandbox_step(g->sandbox);
}

static struct egress *get(struct sandbox *s)
{
	if (!s->egress) {
		s->egress = calloc(1, sizeof(*s->egress));
		if (!s->egress)
			return NULL;
		s->egress->sandbox = s;
		s->egress->retry = (struct timer){ .fn = on_retry, .arg = s->egress };
		s->egress->id = ++egresses_of(s)->gate->ids;
		for (size_t i = 0; i < ARRAY_SIZE(s->egress->fds); i++)
			s->egress->fds[i] = -1;
	}
	return s->egress;
}

void egress_install(struct sandbox *s)
{
	struct egress *g = get(s);
	struct refusal why;

	if (!g) {
		(void)refusal_no_memory(&why);
		sandbox_no_cell(s, &why);
		return;
	}
	bool wanted = s->n_waiting > 0 || (s->head && !s->running);

	if (g->changing || (!wanted && g->retry.loop))
		return;
	timer_cancel(&g->retry);
	g->cell = s->cell;
	g->state = EGRESS_MAKING;
	g->installing = true;
	begin(g, s->spec.egress);
}

/* Drop the change that is under way, and treat the gate as if it had no rules. Return: the change.
 */
static struct egress_change *abandon(struct egress *g)
{
	struct egress_change *w = g->change;

	cell_forget(g->cell, &g->job);
	gate_forget(egresses_of(g->sandbox)->gate, &g->call);
	trust_cancel(&g->trust);
	timer_cancel(&g->retry);
	close_fds(g);
	g->trusted = false;
	g->change = NULL;
	g->state = EGRESS_OFF;
	g->changing = false;
	return w;
}

void egress_drop(struct sandbox *s)
{
	static const struct refusal over = { .kind = REFUSAL_CONFLICT,
					     .code = "sandbox_ended",
					     .message = "the sandbox's cell ended" };
	struct egress *g = s->egress;

	if (!g || !g->cell)
		return;
	struct gate_msg m = { .op = GATE_CLOSE, .id = g->id };
	struct egress_change *w = abandon(g);

	(void)gate_ask(egresses_of(s)->gate, NULL, &m, NULL, 0, NULL);
	json_decref(g->list);
	g->list = NULL;
	g->cell = NULL;
	g->lost = false;
	egress_past(s);
	/* Events of this cell must not be taken for those of the next one. */
	g->id = ++egresses_of(s)->gate->ids;
	if (w)
		w->done(w, &over);
	while (g->waiting) {
		w = g->waiting;
		g->waiting = w->next;
		json_decref(w->list);
		w->done(w, &over);
	}
}

void egress_free(struct sandbox *s)
{
	egress_drop(s);
	free(s->egress);
	s->egress = NULL;
}

/* There is no cell yet: the next one gets the new rules. */
static void change_spec(struct sandbox *s, struct egress_change *w)
{
	json_t *old = s->spec.egress;

	s->spec.egress = json_incref(w->list);
	json_decref(old);
	json_decref(w->list);
	w->done(w, NULL);
}

static void next_change(struct egress *g)
{
	struct sandbox *s = g->sandbox;
	struct egress_change *w = g->waiting;

	if (!w || g->changing)
		return;
	g->waiting = w->next;
	if (!s->cell || !s->cell->sealed) {
		change_spec(s, w);
		next_change(g);
		return;
	}
	g->change = w;
	g->installing = false;
	if (g->state != EGRESS_ON)
		g->state = EGRESS_MAKING;
	g->cell = s->cell;
	json_t *list = w->list;

	w->list = NULL;
	begin(g, list);
	json_decref(list);
}

void egress_change(struct sandbox *s, json_t *list, struct egress_change *w)
{
	struct egress *g = get(s);
	struct refusal why;
	struct egress_change **at = g ? &g->waiting : NULL;

	if (!g) {
		(void)refusal_no_memory(&why);
		w->done(w, &why);
		return;
	}
	w->list = json_incref(list);
	w->next = NULL;
	while (*at)
		at = &(*at)->next;
	*at = w;
	next_change(g);
}

void egress_unchange(struct sandbox *s, struct egress_change *w)
{
	struct egress *g = s->egress;

	if (!g)
		return;
	if (g->change == w)
		g->change = NULL;
	for (struct egress_change **at = &g->waiting; *at; at = &(*at)->next)
		if (*at == w) {
			*at = w->next;
			json_decref(w->list);
			break;
		}
}

/* ---- another gate -------------------------------------------------------------------------- */

static void lose(struct egress *g)
{
	struct egress_change *w = abandon(g);

	g->lost = true;
	if (w) { /* it is the first again */
		w->list = g->list;
		w->next = g->waiting;
		g->waiting = w;
	} else {
		json_decref(g->list);
	}
	g->list = NULL;
	egress_cut(g->sandbox);
}

/* Serving one sandbox may end others, so the list is searched anew after each. */
static struct egress *next_lost(const struct sandboxes *sandboxes)
{
	for (const struct sandbox *s = sandboxes->first; s; s = s->next)
		if (s->egress && s->egress->lost)
			return s->egress;
	return NULL;
}

void egress_again(struct gate_link *l)
{
	struct sandboxes *sandboxes = l->egresses->sandboxes;
	struct egress *g;
	size_t n = 0;

	for (struct sandbox *s = sandboxes->first; s; s = s->next)
		if (s->egress && s->egress->cell) {
			lose(s->egress);
			n++;
		}
	metric_add(M_GATE_RESTARTS, 1);
	log_event(LOG_LEVEL_ERROR, "gate_again", F_UINT("sandboxes", n),
		  F_STR("what", "the gate ended; another one serves, open connections are cut"));
	while ((g = next_lost(sandboxes))) {
		g->lost = false;
		if (json_array_size(g->sandbox->spec.egress) > 0)
			egress_install(g->sandbox);
		else
			next_change(g);
	}
}
