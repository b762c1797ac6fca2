/* SPDX-License-Identifier: Apache-2.0 */
/* approval.c - The list of calls that wait for a person, and how each of them ends. */
#include "front/tool_calls/approval.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/list.h"
#include "base/utf8.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/sandbox.h"
#include "front/support/name.h"
#include "front/support/time_text.h"
#include "front/tool_calls/audit_tool.h"
#include "front/tool_calls/tool_calls.h"

static void approval_free(struct approval *a)
{
	free(a->server);
	free(a->tool);
	free(a->rule);
	free(a->arguments);
	free(a);
}

static void unlist(struct approval *a)
{
	if (a->over)
		a->over(a);
	timer_cancel(&a->timer);
	loop_undefer(a->tool_calls->loop, &a->ask);
	LIST_DROP(a->tool_calls->approvals, a);
	execution_release(a->x);
}

static void decide(struct approval *a, enum approval_outcome o, const char *by, const char *reason)
{
	static const char *const words[] = {
		[APPROVAL_GIVEN] = "approved",
		[APPROVAL_DENIED] = "denied",
		[APPROVAL_LATE] = "late",
	};

	unlist(a);
	audit_approval_end(a, words[o], by, reason);
	a->decided(a, o, by, reason);
	approval_free(a);
}

static void on_late(struct timer *t)
{
	decide(t->arg, APPROVAL_LATE, "nobody", "");
}

static void on_ask(struct deferred *d)
{
	struct approval *a = d->arg;
	struct execution *x = a->x;

	if (x->sink && x->sink->approve && !x->cancelled)
		x->sink->approve(x, a);
}

void approval_decide(struct approval *a, bool yes, const char *by, const char *reason)
{
	decide(a, yes ? APPROVAL_GIVEN : APPROVAL_DENIED, by, reason);
}

void approval_drop(struct approval *a)
{
	unlist(a);
	audit_approval_end(a, "dropped", "nobody", "");
	approval_free(a);
}

static bool too_many(const struct tool_calls *calls, const char *owner)
{
	size_t all = 0, own = 0;

	for (const struct approval *a = calls->approvals; a; a = a->next) {
		all++;
		own += strcmp(a->owner, owner) == 0;
	}
	return all >= APPROVALS_MAX || own >= APPROVALS_OWNER_MAX;
}

static bool fill(struct approval *a, const struct approval_ask *ask)
{
	a->server = strdup(ask->server);
	a->tool = strdup(ask->tool);
	a->rule = strdup(ask->rule);
	a->arguments = strndup(ask->arguments,
			       utf8_fit(ask->arguments, ask->argument_bytes, APPROVAL_SHOWN));
	return a->server && a->tool && a->rule && a->arguments;
}

struct approval *approval_new(struct execution *x, const struct approval_ask *ask)
{
	struct tool_calls *calls = tool_calls_of(x->sandboxes);
	struct approval *a = too_many(calls, x->sandbox->owner) ? NULL : calloc(1, sizeof(*a));

	if (!a || !fill(a, ask)) {
		if (a)
			approval_free(a);
		return NULL;
	}
	a->tool_calls = calls;
	a->x = x;
	random_id(a->id);
	(void)snprintf(a->owner, sizeof(a->owner), "%s", x->sandbox->owner);
	a->argument_bytes = ask->argument_bytes;
	a->created_ms = time_now_ms();
	a->patience_ms = ask->patience_ms;
	a->decided = ask->decided;
	a->arg = ask->arg;
	a->timer = (struct timer){ .fn = on_late, .arg = a };
	a->ask = (struct deferred){ .fn = on_ask, .arg = a };
	LIST_PUSH(calls->approvals, a);
	timer_after(calls->loop, &a->timer, a->patience_ms * CLOCK_NS_PER_MS);
	execution_hold(x);
	audit_approval_begin(a, ask->call);
	loop_defer(calls->loop, &a->ask);
	return a;
}

struct approval *approval_find(struct tool_calls *calls, const char *owner, const char *id)
{
	for (struct approval *a = calls->approvals; a; a = a->next)
		if (strcmp(a->id, id) == 0 && strcmp(a->owner, owner) == 0)
			return a;
	return NULL;
}

void approval_json(const struct approval *a, struct json *j)
{
	json_object_begin(j);
	json_member_str(j, "id", a->id);
	if (a->x->sandbox->name[0])
		json_member_str(j, "sandbox", a->x->sandbox->name);
	json_member_str(j, "execution_id", a->x->id);
	json_member_str(j, "server", a->server);
	json_member_str(j, "tool", a->tool);
	json_member_str(j, "arguments", a->arguments);
	json_member_uint(j, "argument_bytes", a->argument_bytes);
	json_member_bool(j, "truncated", strlen(a->arguments) < a->argument_bytes);
	json_member_str(j, "rule", a->rule);
	time_json(j, "created_at", a->created_ms);
	time_json(j, "expires_at", a->created_ms + a->patience_ms);
	json_object_end(j);
}
