/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tool_call.c - The operation mcp.call: learn the server's tools, decide, ask a person, call,
 * answer.
 *
 * Each step may take a while, and the request may be cancelled in each: exactly one of ask,
 * approval and call is under way then. A call that was begun in the ledger is ended there in every
 * case.
 */
#include "front/tool_calls/ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/sandbox.h"
#include "front/sandbox/sandboxes.h"
#include "front/support/log.h"
#include "front/support/metrics.h"
#include "front/support/name.h"
#include "front/tool_calls/approval.h"
#include "front/tool_calls/audit_tool.h"
#include "front/tool_calls/code.h"
#include "front/tool_calls/rpc.h"
#include "front/tool_calls/tool_calls.h"
#include "front/tool_calls/upstream.h"

#define NAME_MAX_BYTES 256u

struct tool_call {
	struct rpc *rpc;
	struct upstream *upstream;
	struct tool_rules_layer operator_;
	char *tool, *arguments;
	size_t len;
	uint64_t timeout_ms, result_bytes, approve_ms;
	uint64_t began_ns;
	bool begun;   /* in the ledger */
	bool hurried; /* its time is what is left of the execution's */
	char id[33];
	struct upstream_ask ask;
	struct approval *approval;
	struct bridge_call call;
};

static struct bridge_link *bridge_of(const struct tool_call *t)
{
	return tool_calls_of(t->rpc->x->sandboxes)->bridge;
}

static void call_free(struct tool_call *t)
{
	free(t->tool);
	free(t->arguments);
	free(t);
}

static void note_end(struct tool_call *t, struct execution *x, const char *outcome,
		     const char *result, size_t len)
{
	const struct audit_tool a = { x, t->id, t->upstream->name, t->tool };

	if (t->begun)
		audit_tool_end(&a, outcome, result, len, clock_now_ns() - t->began_ns);
	t->begun = false;
}

static void on_cancel(struct rpc *r)
{
	struct tool_call *t = r->work;

	upstream_forget(&t->ask);
	bridge_cancel(bridge_of(t), &t->call);
	if (t->approval)
		approval_drop(t->approval);
	note_end(t, r->x, "cancelled", NULL, 0);
	call_free(t);
}

/* It ends with an error. @t is gone. */
static void fail(struct tool_call *t, const char *code, const char *hint, const char *message)
{
	struct rpc *r = t->rpc;

	note_end(t, r->x, code, NULL, 0);
	r->cancel = NULL;
	call_free(t);
	rpc_fail(r, code, hint, "%s", message);
}

/* It was never begun. */
static void refuse(struct tool_call *t, const char *code, const char *rule, const char *message)
{
	audit_tool_refused(t->rpc->x, t->upstream->name, t->tool, code, rule);
	metric_add(M_TOOLS_REFUSED, 1);
	fail(t, code, NULL, message);
}

/* ---- the call ------------------------------------------------------------------------------ */

static void on_result(struct bridge_call *c, const struct bridge_answer *a)
{
	struct tool_call *t = c->arg;
	struct rpc *r = t->rpc;
	struct execution *x;
	char message[128];

	if (!a->ok) {
		fail(t, a->code,
		     !a->hint && t->hurried && strcmp(a->code, "timeout") == 0 ?
			     "the time of the execution is nearly over: give it a longer timeout" :
			     a->hint,
		     a->message);
		return;
	}
	if (a->text->len > t->result_bytes) {
		(void)snprintf(message, sizeof(message),
			       "the result of %zu bytes is larger than the %llu that are allowed",
			       a->text->len, (unsigned long long)t->result_bytes);
		fail(t, "too_large", "ask the tool for less", message);
		return;
	}
	/* The ledger after the answer: code goes on meanwhile, and nothing that it asks for is
	 * looked at before. */
	x = r->x;
	r->cancel = NULL;
	rpc_answer(r, buf_str(a->text), a->text->len);
	note_end(t, x, a->is_error ? "tool_error" : "ok", buf_str(a->text), a->text->len);
	call_free(t);
}

static void call_now(struct tool_call *t)
{
	uint64_t left_ms = execution_patience_ms(t->rpc->x);
	struct err e = { 0 };

	log_event(LOG_LEVEL_DEBUG, "tool_call", F_STR("execution", t->rpc->x->id),
		  F_STR("server", t->upstream->name), F_STR("tool", t->tool));
	t->hurried = left_ms < t->timeout_ms;
	t->call = (struct bridge_call){ .done = on_result, .arg = t };
	if (bridge_call(bridge_of(t), &t->call, t->upstream->name, t->tool, t->arguments, t->len,
			t->hurried ? left_ms : t->timeout_ms, &e) < 0)
		fail(t, "unavailable", NULL, e.msg);
}

/* ---- a person ------------------------------------------------------------------------------ */

static void on_decided(struct approval *a, enum approval_outcome o, const char *by,
		       const char *reason)
{
	struct tool_call *t = a->arg;
	char message[APPROVAL_REASON * 4 + 256];

	(void)by;
	t->approval = NULL;
	if (o == APPROVAL_GIVEN) {
		call_now(t);
		return;
	}
	if (o == APPROVAL_LATE)
		(void)snprintf(message, sizeof(message),
			       "%.64s.%.128s was not approved: no decision in %llu s",
			       t->upstream->name, t->tool,
			       (unsigned long long)t->approve_ms / 1000);
	else
		(void)snprintf(message, sizeof(message), "%.64s.%.128s was not approved%s%s",
			       t->upstream->name, t->tool, reason[0] ? ": " : "", reason);
	fail(t, "denied", NULL, message);
}

static void ask_person(struct tool_call *t, const char *rule)
{
	const struct approval_ask ask = { .call = t->id,
					  .server = t->upstream->name,
					  .tool = t->tool,
					  .rule = rule,
					  .arguments = t->arguments,
					  .argument_bytes = t->len,
					  .patience_ms = t->approve_ms,
					  .decided = on_decided,
					  .arg = t };

	t->approval = approval_new(t->rpc->x, &ask);
	if (!t->approval)
		fail(t, "busy", "decide what waits: GET /v1/approvals",
		     "too many calls wait for a person already");
}

/* ---- the decision -------------------------------------------------------------------------- */

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The tools are known. */
static void judge(struct tool_call *t)
{
	struct execution *x = t->rpc->x;
	struct code *c = x->sandbox->code;
	const json_t *tool = upstream_tool(t->upstream, t->tool);
	const struct tool_rules_layer own = code_layer(c);
	const struct tool_rules_call call = { t->upstream->name, t->tool, t->len,
					      upstream_read_only(tool) };
	const struct audit_tool a = { x, t->id, t->upstream->name, t->tool };
	struct tool_decision d;
	char message[512];

	if (!tool) {
		(void)snprintf(message, sizeof(message), "server %.64s has no tool '%.200s'",
			       t->upstream->name, t->tool);
		refuse(t, "unknown_tool", "", message);
		return;
	}
	tool_rules_decide(&t->operator_, &own, &call, x->sandboxes->loop->now_ns, &d);
	if (d.verdict == TOOL_RULES_MAY_NOT) {
		refuse(t, d.code, d.rule, d.message);
		return;
	}
	if (audit_tool_begin(&a, t->arguments, t->len, &d) < 0) {
		fail(t, "internal", NULL, "the ledger cannot be written, so nothing is done");
		return;
	}
	t->begun = true;
	t->began_ns = clock_now_ns();
	tool_rules_spend(&t->operator_, &own, &call, x->sandboxes->loop->now_ns);
	x->sandbox->tool_calls++;
	sandbox_note(x->sandbox);
	metric_add(M_TOOL_CALLS, 1);
	if (d.verdict == TOOL_RULES_ASK)
		ask_person(t, d.rule);
	else
		call_now(t);
}

static void on_learnt(struct upstream_ask *ask, const struct bridge_answer *why)
{
	struct tool_call *t = ask->arg;

	if (why)
		fail(t, why->code, why->hint, why->message);
	else
		judge(t);
}

/* ---- the request --------------------------------------------------------------------------- */

static const char *name_in(const json_t *m, const char *key)
{
	const json_t *v = json_object_get(m, key);
	const char *s = json_string_value(v);
	size_t len = json_string_length(v);

	return s && len > 0 && len <= NAME_MAX_BYTES && strlen(s) == len ? s : NULL;
}

static void unknown_server(struct rpc *r, const char *name)
{
	_buf_ struct buf b = BUF_INIT(1024);
	size_t i;
	json_t *one;

	json_array_foreach(r->x->sandbox->spec.servers, i, one)(void)
		buf_printf(&b, "%s%s", i ? ", " : "", json_string_value(one));
	audit_tool_refused(r->x, name, "", "unknown_server", "servers");
	metric_add(M_TOOLS_REFUSED, 1);
	rpc_fail(r, "unknown_server", NULL, "this sandbox has no server '%.100s'; it has: %s", name,
		 b.len ? buf_str(&b) : "none");
}

static struct tool_call *call_new(struct rpc *r, const char *tool, const char *arguments,
				  size_t len)
{
	struct tool_call *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->tool = strdup(tool);
	t->arguments = malloc(len + 1);
	if (!t->tool || !t->arguments) {
		call_free(t);
		return NULL;
	}
	memcpy(t->arguments, arguments, len);
	t->arguments[len] = '\0';
	t->len = len;
	t->rpc = r;
	random_id(t->id);
	return t;
}

static void set_limits(struct tool_call *t, const json_t *m)
{
	const struct tool_rules *o = t->operator_.rules, *s = &t->rpc->x->sandbox->code->rules;
	json_int_t asked = json_integer_value(json_object_get(m, "timeout_ms"));

	t->timeout_ms = smaller(o->call_ms, s->call_ms);
	if (asked > 0)
		t->timeout_ms = smaller(t->timeout_ms, (uint64_t)asked);
	t->result_bytes = smaller(o->result_bytes, s->result_bytes);
	t->approve_ms = smaller(o->approve_ms, s->approve_ms);
}

void tool_call_run(struct rpc *r, const json_t *m)
{
	const char *server = name_in(m, "server"), *tool = name_in(m, "tool"), *why = NULL;
	size_t len = 0;
	const char *arguments = rpc_text(m, "arguments", &len, &why);
	struct tool_rules_layer operator_ = { 0 };
	struct upstream *u;
	struct tool_call *t;
	struct err e = { 0 };

	if (!server || !tool) {
		rpc_fail(r, "bad_request", NULL,
			 "'server' and 'tool' must be names of at most 256 bytes");
		return;
	}
	if (!arguments) {
		rpc_fail(r, "bad_request", NULL, "'arguments' %s", why);
		return;
	}
	u = code_server(r->x->sandbox, server, &operator_);
	if (!u) {
		unknown_server(r, server);
		return;
	}
	t = call_new(r, tool, arguments, len);
	if (!t) {
		rpc_fail(r, "internal", NULL, "the daemon is out of memory");
		return;
	}
	t->upstream = u;
	t->operator_ = operator_;
	set_limits(t, m);
	r->work = t;
	r->cancel = on_cancel;
	t->ask = (struct upstream_ask){ .done = on_learnt, .arg = t };
	if (u->tools)
		judge(t);
	else if (upstream_learn(r->x, u, &t->ask, &e) < 0)
		fail(t, "unavailable", NULL, e.msg);
}
