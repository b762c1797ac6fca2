/* SPDX-License-Identifier: Apache-2.0 */
/*
 * egress.c - The egress of one sandbox: its changes in order, its cells, and a gate that restarts.
 *
 * A sandbox makes one change at a time (egress_apply.c); the others wait. The rules of a change
 * become the sandbox's when the gate has them. A change of a sandbox without a cell is for its next
 * cell. When the gate restarts, every sandbox sends its rules again, first those that the gate had.
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
#include "front/egress/narrow.h"
#include "front/gate/gate_link.h"
#include "front/sandbox/audit.h"
#include "front/sandbox/hooks.h"
#include "front/sandbox/sandbox.h"
#include "front/sandbox/sandboxes.h"
#include "front/support/log.h"
#include "front/support/metrics.h"
#include "front/support/refusal.h"

#define RETRY_NS CLOCK_NS_PER_S

static const struct egresses *egresses_of(const struct sandbox *s)
{
	return s->sandboxes->hooks->egress.part;
}

static void next_change(struct egress *g);

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

/* From now on the sandbox has this list, as far as the policy still allows it: the policy may have
 * changed while the change was on its way. */
static void set_list(struct sandbox *s, json_t *list)
{
	json_t *before = s->spec.egress;

	if (before == list)
		return;
	s->spec.egress = json_incref(list);
	json_decref(before);
	audit_spec(s);
	policy_narrow(s);
}

void egress_applied(struct egress *g, const struct refusal *why)
{
	struct sandbox *s = g->sandbox;
	struct egress_change *w = g->change;
	json_t *list = g->list;

	close_fds(g);
	g->changing = false;
	g->change = NULL;
	g->list = NULL;
	if (!why) {
		g->state = EGRESS_ON;
		g->held = g->next;
		set_list(s, list); /* another change may begin in it */
	} else if (g->state == EGRESS_MAKING) {
		g->state = EGRESS_OFF;
	}
	json_decref(list);
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
	egress_apply(g, s->spec.egress);
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
	set_list(s, w->list);
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
	egress_apply(g, list);
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
