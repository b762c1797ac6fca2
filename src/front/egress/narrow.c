/* SPDX-License-Identifier: Apache-2.0 */
/* narrow.c - Remove entries from sandboxes that the policy does not allow any more. */
#include "front/egress/narrow.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "front/egress/egress.h"
#include "front/policy/policy.h"
#include "front/sandbox/audit.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/sandbox.h"
#include "front/sandbox/sandboxes.h"
#include "front/spec/judge.h"
#include "front/support/log.h"

struct narrowing {
	struct egress_change pending;
	struct sandbox *sandbox;
};

/* A sandbox that could reach more than it may is stopped. */
static void give_up(struct sandbox *s)
{
	static const char why[] = "what it may reach could not be narrowed to the policy";

	if (s->name[0])
		sandbox_halt(s, SANDBOX_STOPPED, why);
	else
		sandbox_end(s, why);
}

static void on_narrowed(struct egress_change *w, const struct refusal *why)
{
	struct narrowing *n = w->arg;
	struct sandbox *s = n->sandbox;

	free(n);
	/* When the cell has ended there is nothing to cut, and the next cell follows the spec. */
	if (why && strcmp(why->code, "sandbox_ended") != 0)
		give_up(s);
	else if (!why)
		sandbox_step(s);
}

/* The entries of the list that are still allowed; a new array. */
static json_t *within(struct sandboxes *sandboxes, const char *owner, const json_t *list)
{
	json_t *left = json_array(), *entry;
	size_t i;

	json_array_foreach(list, i, entry)
	{
		if (policy_reaches(sandboxes->admission, owner, json_string_value(entry)))
			(void)json_array_append(left, entry);
	}
	return left;
}

json_t *policy_narrowed(struct sandbox *s, json_t *list)
{
	struct refusal why;

	/* A fetcher is the daemon's, see policy_sandbox(). */
	if (!s->sandboxes->admission->policy->rules || s->spec.fetcher)
		return json_incref(list);
	json_t *left = within(s->sandboxes, s->owner, list);

	if (json_array_size(left) == json_array_size(list)) {
		json_decref(left);
		return json_incref(list);
	}
	log_event(LOG_LEVEL_INFO, "policy_narrow", F_STR("owner", s->owner),
		  F_STR("sandbox", s->name), F_UINT("entries", json_array_size(list)),
		  F_UINT("left", json_array_size(left)));
	(void)audit_egress(s, left, &why); /* it happens even if that fails */
	return left;
}

void policy_narrow(struct sandbox *s)
{
	if (s->state != SANDBOX_RUNNING || s->ending)
		return;
	json_t *left = policy_narrowed(s, s->spec.egress), *before = s->spec.egress;

	s->spec.egress = left;
	json_decref(before);
	if (left == before)
		return;
	struct narrowing *n = calloc(1, sizeof(*n));

	audit_spec(s);
	if (!n) {
		give_up(s);
		return;
	}
	*n = (struct narrowing){ .pending = { .done = on_narrowed, .arg = n }, .sandbox = s };
	egress_change(s, left, &n->pending);
}

/* Stopping one may remove it from the list, but no other. */
void policy_narrow_all(struct sandboxes *sandboxes)
{
	for (struct sandbox *s = sandboxes->first, *next; s; s = next) {
		next = s->next;
		policy_narrow(s);
	}
}
