/* SPDX-License-Identifier: Apache-2.0 */
/* handle_egress.c - Egress of a sandbox over HTTP: its rules, new rules, and its connections. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/foreign.h"
#include "base/json.h"
#include "front/api/handlers.h"
#include "front/egress/egress.h"
#include "front/http/reply.h"
#include "front/http/serve.h"
#include "front/operations/services.h"
#include "front/policy/egress_rules.h"
#include "front/sandbox/audit.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/sandbox.h"
#include "front/spec/judge.h"
#include "front/support/json_alloc.h"

#define ANSWER_MAX (1u << 20)

/* ---- rules --------------------------------------------------------------------------------- */

static void reply_egress(struct http_exchange *x, const struct sandbox *s)
{
	struct reply answer;
	struct json *j = reply_object(&answer, ANSWER_MAX);

	json_member_list(j, "egress", s->spec.egress);
	reply_end(&answer, x, 200);
}

void handle_egress_get(struct sandbox *s, struct http_exchange *x)
{
	reply_egress(x, s);
}

/* A change on its way to the gate. It is in the ledger, so it goes on without its client. */
struct change {
	struct egress_change pending;
	struct sandbox *sandbox;
	struct http_exchange *x; /* NULL: the client is gone */
};

static void on_changed(struct egress_change *w, const struct refusal *why)
{
	struct change *c = w->arg;
	struct http_exchange *x = context_done(c->x);
	struct sandbox *s = c->sandbox;

	free(c);
	if (x && why)
		reply_refusal(x, why);
	else if (x)
		reply_egress(x, s);
	if (!why)
		sandbox_step(s);
}

static void change_gone(struct request_context *v)
{
	struct change *c = v->work;

	c->x = NULL;
	v->work = NULL;
}

static void change(struct http_exchange *x, struct sandbox *s, json_t *list)
{
	struct change *c;
	struct refusal why;

	if (s->state != SANDBOX_RUNNING || s->stopping) {
		reply_error(x, 409, "sandbox_stopped", "name", "remove it and make another",
			    "the sandbox is %s: %s", sandbox_state_name(s->state), s->reason);
		return;
	}
	if (policy_egress(s->sandboxes->admission, s->owner, list, &why) < 0 ||
	    audit_egress(s, list, &why) < 0) {
		reply_refusal(x, &why);
		return;
	}
	c = calloc(1, sizeof(*c));
	if (!c) {
		reply_no_memory(x);
		return;
	}
	*c = (struct change){ .pending = { .done = on_changed, .arg = c }, .sandbox = s, .x = x };
	context_wait(x, c, change_gone);
	egress_change(s, list, &c->pending);
}

void handle_egress_put(struct sandbox *s, struct http_exchange *x)
{
	static struct egress_rules rules;
	struct err e = { 0 };
	json_t *list = egress_list(json_object_get(context_of(x)->fields, "egress"), &e);

	if (e.code == -ENOMEM)
		reply_no_memory(x);
	else if (e.code < 0 || egress_rules(list, &rules, &e) < 0)
		reply_error(x, 422, "invalid_value", "egress",
			    "an entry is a host name, *.DOMAIN or HOST:PORT, as in api.example.com",
			    "%s", e.msg);
	else
		change(x, s, list);
	json_decref(list);
}

/* ---- connections --------------------------------------------------------------------------- */

struct inquiry {
	struct gate_call call;
	struct services *services;
	char name[SANDBOX_NAME_MAX + 1];
	struct http_exchange *x;
};

static const char *state_name(unsigned int state)
{
	static const char *const names[] = { "resolving", "connecting", "open" };

	return state < 3 ? names[state] : "open";
}

static void write_conn(struct json *j, struct gate_conn *c)
{
	c->host[sizeof(c->host) - 1] = c->address[sizeof(c->address) - 1] = '\0';
	json_object_begin(j);
	json_member_str(j, "host", c->host);
	json_member_uint(j, "port", c->port);
	json_member_str(j, "address", c->address);
	json_member_str(j, "state", state_name(c->state));
	json_member_uint(j, "bytes_out", c->up);
	json_member_uint(j, "bytes_in", c->down);
	json_member_uint(j, "age_ms", c->age_ms);
	json_object_end(j);
}

static void write_name(struct json *j, struct gate_name *n)
{
	n->host[sizeof(n->host) - 1] = '\0';
	json_object_begin(j);
	json_member_str(j, "host", n->host);
	json_member_uint(j, "count", n->count);
	json_member_bool(j, "allowed", n->allowed != 0);
	json_object_end(j);
}

/* Sent by the gate beside its numbers, which have the lengths of the lists. */
struct net_lists {
	struct gate_conn conns[GATE_CONNS_SHOWN];
	struct gate_name names[GATE_NAMES_SHOWN];
};

static void write_net(struct json *j, const struct egress *g, const struct gate_numbers *n,
		      struct net_lists *lists)
{
	static const struct egress none;

	json_object_begin(j);
	json_key(j, "refusals");
	egress_notes_json(g ? g : &none, j);
	json_member_array(j, "connections");
	for (size_t i = 0; lists && i < n->n_conns; i++)
		write_conn(j, &lists->conns[i]);
	json_array_end(j);
	json_member_array(j, "names");
	for (size_t i = 0; lists && i < n->n_names; i++)
		write_name(j, &lists->names[i]);
	json_array_end(j);
	json_member_uint(j, "live", n->live);
	json_member_uint(j, "opened", n->opened);
	json_member_uint(j, "closed", n->closed);
	json_member_uint(j, "refused", n->refused);
	json_member_uint(j, "failed", n->failed);
	json_member_uint(j, "names_asked", n->asked);
	json_member_uint(j, "names_refused", n->names_refused);
	json_member_uint(j, "bytes_out", n->up);
	json_member_uint(j, "bytes_in", n->down);
	json_object_end(j);
}

static void reply_net(struct http_exchange *x, const struct egress *g, const struct gate_numbers *n,
		      struct net_lists *lists)
{
	struct reply answer;

	write_net(reply_begin(&answer, ANSWER_MAX), g, n, lists);
	reply_end(&answer, x, 200);
}

/* An attacker may have taken over the gate: lists that do not fit are ignored. */
static void read_lists(int fd, struct gate_numbers *n, struct net_lists *ret)
{
	size_t conns = n->n_conns * sizeof(ret->conns[0]),
	       names = n->n_names * sizeof(ret->names[0]);

	if (fd >= 0 && foreign_check(fd, FOREIGN_MEMORY) == 0 && n->n_conns <= GATE_CONNS_SHOWN &&
	    n->n_names <= GATE_NAMES_SHOWN && pread(fd, ret->conns, conns, 0) == (ssize_t)conns &&
	    pread(fd, ret->names, names, (off_t)conns) == (ssize_t)names)
		return;
	n->n_conns = n->n_names = 0;
}

static void on_state(struct gate_call *c, const struct gate_msg *reply, int fd)
{
	static struct net_lists lists;
	struct gate_numbers numbers = reply->u.numbers;
	struct inquiry *q = c->arg;
	struct http_exchange *x = context_done(q->x);
	/* By name again: the sandbox may be gone, or another one of that name may be there. */
	const struct sandbox *s =
		sandbox_find(q->services->sandboxes, context_of(x)->owner, q->name);

	free(q);
	read_lists(fd, &numbers, &lists);
	reply_net(x, s ? s->egress : NULL, &numbers, &lists);
}

static void inquiry_gone(struct request_context *v)
{
	struct inquiry *q = v->work;

	gate_forget(q->services->gate, &q->call);
	free(q);
	v->work = NULL;
}

void handle_net(struct sandbox *s, struct http_exchange *x)
{
	static const struct gate_numbers nothing;
	struct services *services = context_of(x)->server->services;
	struct inquiry *q = s->egress ? calloc(1, sizeof(*q)) : NULL;

	if (q) {
		struct gate_msg m = { .op = GATE_INQUIRE, .id = s->egress->id };

		*q = (struct inquiry){ .call = { .fn = on_state, .arg = q },
				       .services = services,
				       .x = x };
		memcpy(q->name, s->name, sizeof(q->name));
		context_wait(x, q, inquiry_gone);
		if (gate_ask(services->gate, &q->call, &m, NULL, 0, NULL) == 0)
			return;
		(void)context_done(x);
		free(q);
	}
	reply_net(x, NULL, &nothing, NULL);
}
