/* SPDX-License-Identifier: Apache-2.0 */
/*
 * note.c - Events of the gate: into the ledger, the metrics, and the hints of executions.
 *
 * The gate bounds the number of events of one sandbox, and sends the number of the others.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "front/egress/egress.h"
#include "front/sandbox/audit.h"
#include "front/sandbox/sandbox.h"
#include "front/sandbox/sandboxes.h"
#include "front/support/json_alloc.h"
#include "front/support/log.h"
#include "front/support/metrics.h"
#include "front/support/time_text.h"

#define PAST_MAX 256u

/* Cells that have ended: their last events come afterwards. */
static struct past {
	uint32_t id;
	char owner[OWNER_MAX], name[SANDBOX_NAME_MAX + 1], sandbox[33];
} past[PAST_MAX];
static size_t n_past;

void egress_past(const struct sandbox *s)
{
	struct past *p = &past[n_past++ % PAST_MAX];

	p->id = s->egress->id;
	(void)snprintf(p->owner, sizeof(p->owner), "%s", s->owner);
	(void)snprintf(p->name, sizeof(p->name), "%s", s->name);
	(void)snprintf(p->sandbox, sizeof(p->sandbox), "%s", s->id);
}

static struct sandbox *by_id(struct sandboxes *sandboxes, uint32_t id)
{
	for (struct sandbox *s = sandboxes->first; s; s = s->next)
		if (s->egress && s->egress->id == id)
			return s;
	return NULL;
}

static bool find_past(uint32_t id, struct audit_whose *ret)
{
	for (size_t i = 0; i < PAST_MAX; i++)
		if (past[i].id == id) {
			*ret = (struct audit_whose){ past[i].owner, past[i].name, past[i].sandbox };
			return true;
		}
	return false;
}

static void count(const struct gate_event *ev)
{
	switch (ev->kind) {
	case GATE_OPENED:
		metric_add(M_EGRESS_OPENED, 1);
		break;
	case GATE_CLOSED:
		metric_add(M_EGRESS_BYTES, ev->up + ev->down);
		break;
	case GATE_REFUSED:
	case GATE_NAME_REFUSED:
		metric_add(M_EGRESS_REFUSED, 1);
		break;
	case GATE_FAILED:
		metric_add(M_EGRESS_FAILED, 1);
		break;
	case GATE_FLOOD:
		metric_add(M_EGRESS_UNTOLD, ev->count);
		break;
	default:
		break;
	}
}

static struct egress_note *add_note(struct egress *g, uint32_t kind)
{
	struct egress_note *n = &g->notes[g->n_notes++ % EGRESS_NOTES];

	*n = (struct egress_note){ .kind = kind, .at_ns = clock_now_ns(), .at_ms = time_now_ms() };
	return n;
}

void egress_cut(const struct sandbox *s)
{
	const struct audit_whose whose = { s->owner, s->name, s->id };
	const struct gate_event ev = {
		.kind = GATE_CLOSED,
		.host = "*",
		.why = "the gate was replaced; open connections were cut",
	};
	struct egress_note *n = add_note(s->egress, ev.kind);

	audit_egress_event(s->sandboxes->daemon->ledger, &whose, &ev);
	memcpy(n->host, ev.host, sizeof(n->host));
	memcpy(n->why, ev.why, sizeof(n->why));
}

void egress_event(struct gate_link *l, uint32_t id, const struct gate_event *ev)
{
	struct sandboxes *sandboxes = l->egresses->sandboxes;
	struct sandbox *s = by_id(sandboxes, id);
	struct audit_whose whose = { s ? s->owner : "", s ? s->name : "", s ? s->id : "" };

	count(ev);
	if (!s && !find_past(id, &whose))
		return;
	audit_egress_event(sandboxes->daemon->ledger, &whose, ev);
	if (!s)
		return;
	if (ev->kind == GATE_REFUSED || ev->kind == GATE_NAME_REFUSED || ev->kind == GATE_FAILED) {
		struct egress_note *n = add_note(s->egress, ev->kind);

		n->port = ev->port;
		memcpy(n->host, ev->host, sizeof(n->host));
		memcpy(n->why, ev->why, sizeof(n->why));
		log_event(LOG_LEVEL_DEBUG, "egress_refused", F_STR("sandbox", s->name),
			  F_STR("host", ev->host), F_UINT("port", ev->port), F_STR("why", ev->why));
	}
}

const struct egress_note *egress_last(const struct sandbox *s, uint64_t since_ns)
{
	const struct egress *g = s->egress;
	const struct egress_note *n = g && g->n_notes ? &g->notes[(g->n_notes - 1) % EGRESS_NOTES] :
							NULL;

	return n && n->at_ns >= since_ns && n->host[0] ? n : NULL;
}

/* There was no refusal, perhaps because there is no gate, but the output looks so. */
static void guess(const struct sandbox *s, char *text, size_t size)
{
	const struct config *c = &s->sandboxes->daemon->config;
	bool index = c->pip_index || c->npm_registry || c->package_dir;

	if (json_array_size(s->spec.egress) > 0)
		(void)snprintf(text, size,
			       "this looks like a connection that egress does not allow; add the "
			       "host's name to egress");
	else
		(void)snprintf(text, size,
			       "this looks like a connection that egress denies: the sandbox "
			       "reaches no host; name hosts in egress (POST /v1/sandboxes, PUT "
			       "/v1/sandboxes/NAME/egress, or create_sandbox if it is offered)%s",
			       index ? "; pip install and npm install need none" : "");
}

bool egress_hint(const struct sandbox *s, uint64_t since_ns, bool looks, char *text, size_t size)
{
	const struct egress_note *n = egress_last(s, since_ns);

	if (!n) {
		if (looks)
			guess(s, text, size);
		return looks;
	}
	if (n->kind == GATE_NAME_REFUSED)
		(void)snprintf(text, size, "egress to %s is not allowed; add it to egress",
			       n->host);
	else if (n->kind == GATE_CLOSED)
		(void)snprintf(text, size, "%s; try again", n->why);
	else
		(void)snprintf(text, size, "egress to %s:%u %s: %s", n->host, n->port,
			       n->kind == GATE_FAILED ? "failed" : "was refused", n->why);
	return true;
}

/* The spec gets a list only after the gate has confirmed it. */
void egress_force_json(const struct sandbox *s, struct json *j)
{
	const struct egress *g = s->egress;
	bool open = g && g->state == EGRESS_ON && !g->lost;

	json_member_list(j, "egress", open ? s->spec.egress : NULL);
	json_member_str(j, "gate",
			open                        ? "open" :
			g && g->state != EGRESS_OFF ? "opening" :
						      "closed");
}

void egress_notes_json(const struct egress *g, struct json *j)
{
	json_array_begin(j);
	for (size_t i = 0; i < EGRESS_NOTES && i < g->n_notes; i++) {
		const struct egress_note *n = &g->notes[(g->n_notes - 1 - i) % EGRESS_NOTES];

		json_object_begin(j);
		json_member_str(j, "host", n->host);
		json_member_uint(j, "port", n->port);
		json_member_str(j, "why", n->why);
		time_json(j, "at", n->at_ms);
		json_object_end(j);
	}
	json_array_end(j);
}
