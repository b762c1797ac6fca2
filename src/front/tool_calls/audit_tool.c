/* SPDX-License-Identifier: Apache-2.0 */
/* audit_tool.c - Lines of the ledger about tools. */
#include "front/tool_calls/audit_tool.h"

#include "base/err.h"
#include "front/sandbox/audit.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/sandbox.h"
#include "front/support/log.h"
#include "front/tool_calls/approval.h"
#include "ledger/ledger.h"
#include "mcp/tool_rules.h"

static void complain(const struct execution *x, const struct err *e)
{
	log_event(LOG_LEVEL_ERROR, "not_recorded", F_STR("owner", x->sandbox->owner),
		  F_STR("sandbox", x->sandbox->name), F_STR("why", e->msg));
}

int audit_tool_begin(const struct audit_tool *a, const char *arguments, size_t len,
		     const struct tool_decision *d)
{
	const struct sandbox *s = a->x->sandbox;
	struct err e = { 0 };

	if (ledger_record(audit_ledger(s), &e, "tool.begin", s->owner, s->name, L_STR("id", a->id),
			  L_STR("execution", a->x->id), L_STR("server", a->server),
			  L_STR("tool", a->tool), L_SHA256("arguments_sha256", arguments, len),
			  L_UINT("argument_bytes", len),
			  L_STR("verdict", d->verdict == TOOL_RULES_ASK ? "approve" : "allow"),
			  L_STR("rule", d->rule)) == 0)
		return 0;
	complain(a->x, &e);
	return -1;
}

void audit_tool_end(const struct audit_tool *a, const char *outcome, const char *result, size_t len,
		    uint64_t took_ns)
{
	const struct sandbox *s = a->x->sandbox;
	struct err e = { 0 };
	int r;

	if (result)
		r = ledger_record(audit_ledger(s), &e, "tool.end", s->owner, s->name,
				  L_STR("id", a->id), L_STR("execution", a->x->id),
				  L_STR("server", a->server), L_STR("tool", a->tool),
				  L_STR("outcome", outcome), L_SHA256("result_sha256", result, len),
				  L_UINT("result_bytes", len), L_UINT("took_ns", took_ns));
	else
		r = ledger_record(audit_ledger(s), &e, "tool.end", s->owner, s->name,
				  L_STR("id", a->id), L_STR("execution", a->x->id),
				  L_STR("server", a->server), L_STR("tool", a->tool),
				  L_STR("outcome", outcome), L_UINT("took_ns", took_ns));
	if (r < 0)
		complain(a->x, &e);
}

void audit_tool_refused(struct execution *x, const char *server, const char *tool, const char *code,
			const char *rule)
{
	const struct sandbox *s = x->sandbox;
	struct err e = { 0 };

	if (x->tools_refused++ < AUDIT_REFUSALS_MAX &&
	    ledger_record(audit_ledger(s), &e, "tool.refused", s->owner, s->name,
			  L_STR("execution", x->id), L_STR("server", server), L_STR("tool", tool),
			  L_STR("code", code), L_STR("rule", rule)) < 0)
		complain(x, &e);
}

void audit_tools_over(const struct execution *x)
{
	const struct sandbox *s = x->sandbox;
	struct err e = { 0 };
	unsigned int more =
		x->tools_refused > AUDIT_REFUSALS_MAX ? x->tools_refused - AUDIT_REFUSALS_MAX : 0;

	if ((more || x->rpc_refused) &&
	    ledger_record(audit_ledger(s), &e, "tool.refusals", s->owner, s->name,
			  L_STR("execution", x->id), L_UINT("tools", more),
			  L_UINT("requests", x->rpc_refused)) < 0)
		complain(x, &e);
}

void audit_approval_begin(const struct approval *a, const char *call)
{
	const struct sandbox *s = a->x->sandbox;
	struct err e = { 0 };

	if (ledger_record(audit_ledger(s), &e, "approval.begin", s->owner, s->name,
			  L_STR("id", a->id), L_STR("call", call), L_STR("execution", a->x->id),
			  L_STR("server", a->server), L_STR("tool", a->tool)) < 0)
		complain(a->x, &e);
}

void audit_approval_end(const struct approval *a, const char *outcome, const char *by,
			const char *reason)
{
	const struct sandbox *s = a->x->sandbox;
	struct err e = { 0 };

	if (ledger_record(audit_ledger(s), &e, "approval.end", s->owner, s->name,
			  L_STR("id", a->id), L_STR("outcome", outcome), L_STR("by", by),
			  L_STR("reason", reason)) < 0)
		complain(a->x, &e);
}
