/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adopt.c - Decides which sandboxes of the former front live on.
 *
 * Theory of operation. The keeper's table shows which sandboxes had a cell and in which state their
 * kernels were; the keeper has handed over their descriptors; the store has their specs. A sandbox
 * is adopted if all three agree. The front claims the cell of each adopted sandbox from the warden,
 * and then asks the warden to end the rest (WARDEN_REST): cells of the pool and of sandboxes
 * without a name, cells that were being made, and cells that the table does not have. So nothing is
 * left over, whatever the table contains.
 */
#include "front/sandbox/adopt.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "front/cell/cell.h"
#include "front/cell/keep.h"
#include "front/sandbox/audit.h"
#include "front/sandbox/sandbox.h"
#include "front/sandbox/sandboxes.h"
#include "front/support/log.h"
#include "front/support/metrics.h"

#define SETTLED_NS (500 * CLOCK_NS_PER_MS)

static bool is_double(const struct adopt *a, const struct keeper_slot *s)
{
	for (size_t i = 0; i < a->n; i++) {
		const struct keeper_slot *t = &a->found[i].was;

		if (strcmp(t->id, s->id) == 0 || (s->cell && t->cell == s->cell))
			return true;
	}
	return false;
}

static void look(struct sandboxes *sandboxes, int i)
{
	struct adopt *a = sandboxes->adopt;
	const struct keeper_slot *slot = keep_slot(sandboxes->cells->keep, i);
	struct adoptee *to = &a->found[a->n];
	const char *wrong;

	if (!__atomic_load_n(&slot->used, __ATOMIC_ACQUIRE))
		return;
	to->slot = i;
	to->taken = false;
	memcpy(&to->was, slot, sizeof(to->was));
	wrong = keep_check(&to->was);
	if (!wrong && is_double(a, &to->was))
		wrong = "the same id or cell as another slot";
	if (wrong)
		log_event(LOG_LEVEL_WARNING, "slot_damaged", F_INT("slot", i),
			  F_STR("what", wrong));
	else if (!to->was.ending)
		a->ids[a->n++] = to->was.id;
}

static size_t count_used(struct keep *k)
{
	size_t n = 0;

	for (int i = 0; i < (int)KEEPER_SLOTS; i++)
		n += keep_slot(k, i)->used != 0;
	return n;
}

void adopt_open(struct sandboxes *sandboxes, bool warden)
{
	struct adopt *a = sandboxes->adopt;
	size_t n = sandboxes->cells->keep->table && warden ? count_used(sandboxes->cells->keep) : 0;

	if (n == 0)
		return;
	a->found = calloc(n, sizeof(*a->found));
	a->ids = calloc(n, sizeof(*a->ids));
	for (int i = 0; a->found && a->ids && i < (int)KEEPER_SLOTS && a->n < n; i++)
		look(sandboxes, i);
}

bool adopt_sandbox(struct sandboxes *sandboxes, struct sandbox *s)
{
	struct adopt *a = sandboxes->adopt;

	for (size_t i = 0; i < a->n; i++) {
		struct adoptee *c = &a->found[i];
		const char *why;

		if (c->taken || strcmp(c->was.id, s->id) != 0)
			continue;
		why = sandbox_adopt(s, c->slot, &c->was);
		c->taken = !why;
		if (why) {
			s->slot = -1;
			(void)snprintf(s->reason, sizeof(s->reason), "the front was killed, and %s",
				       why);
			return false;
		}
		a->adopted++;
		for (size_t k = 0; s->cell && k < LANG_MAX_; k++)
			a->kernels += s->cell->kernels[k].attached;
		return true;
	}
	return false;
}

static void on_settled(struct timer *t)
{
	struct sandboxes *sandboxes = t->arg;

	keep_settled(sandboxes->cells->keep);
}

static void on_rest(struct warden_call *c, const struct warden_reply *r, int *fds, size_t n)
{
	(void)fds;
	(void)n;
	if (r->code < 0)
		log_event(LOG_LEVEL_ERROR, "rest_failed", F_STR("why", r->msg));
	free(c);
}

static void end_the_rest(struct sandboxes *sandboxes)
{
	struct warden_call *c = calloc(1, sizeof(*c));

	if (!c)
		abort();
	c->fn = on_rest;
	if (warden_link_ask_cell(sandboxes->cells->link, c, WARDEN_REST, 0, 0, NULL) < 0)
		free(c);
}

/* Record the outcome: sandboxes that were adopted, and those that are lost, with the reason. */
static void write_down(struct sandboxes *sandboxes)
{
	const struct adopt *a = sandboxes->adopt;

	for (struct sandbox *s = sandboxes->first; s; s = s->next) {
		if (s->state == SANDBOX_RUNNING)
			audit_adopted(s);
		for (size_t i = 0; s->state != SANDBOX_RUNNING && i < a->n; i++)
			if (strcmp(a->ids[i], s->id) == 0)
				audit_changed(s);
	}
}

void adopt_close(struct sandboxes *sandboxes)
{
	struct adopt *a = sandboxes->adopt;
	const char *signal = sandboxes->cells->keep->signo > 0 ?
				     sigabbrev_np(sandboxes->cells->keep->signo) :
				     NULL;
	size_t at = 0;

	if (!sandboxes->cells->keep->table)
		return;
	for (int i = 0; i < (int)KEEPER_SLOTS; i++) {
		while (at < a->n && (a->found[at].slot < i || !a->found[at].taken))
			at++;
		if (at >= a->n || a->found[at].slot != i)
			keep_slot_free(sandboxes->cells->keep, i);
	}
	keep_done(sandboxes->cells->keep);
	write_down(sandboxes);
	a->settled.fn = on_settled;
	a->settled.arg = sandboxes;
	timer_set(sandboxes->loop, &a->settled, clock_now_ns() + SETTLED_NS);
	free(a->found);
	free(a->ids);
	a->found = NULL;
	a->ids = NULL;
	if (sandboxes->cells->keep->life <= 1)
		return;
	end_the_rest(sandboxes);
	metric_add(M_FRONT_RESTARTS, sandboxes->cells->keep->life - 1);
	metric_add(M_SANDBOXES_ADOPTED, a->adopted);
	log_event(LOG_LEVEL_WARNING, "adopted", F_UINT("sandboxes", a->adopted),
		  F_UINT("kernels", a->kernels), F_STR("ended_by", signal ? signal : ""),
		  F_UINT("restarts", sandboxes->cells->keep->life - 1),
		  F_MS("ms", clock_now_ns() - sandboxes->daemon->started_ns));
}
