/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tool_rules.h - Which tools of MCP servers code may call, how often, and which need approval.
 * Pure.
 *
 * Two sets of rules hold at once: the operator's for a server (the member `caisson` of its entry in
 * mcpServers, patterns of tools), and those of a sandbox (`tools` of its spec, patterns of
 * server.tool), which can only take away. In this order, the first that objects is the answer:
 *
 *   deny            of either
 *   default, allow  of the operator: a tool that no `allow` names must be annotated as read-only
 *                   (default "read-only"), may be called anyway ("all"), or may not ("none")
 *   allow           of the sandbox: when there is one, it has to name the tool
 *   sizes, budgets, rates of both
 *   approve         of either: a person has to approve the call
 *
 * The server itself declares a tool read-only; an operator who does not trust that sets "none".
 */
#ifndef CAISSON_MCP_TOOL_RULES_H
#define CAISSON_MCP_TOOL_RULES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

#define TOOL_RULES_PATTERNS_MAX 64u /* in one list */
#define TOOL_RULES_PATTERN_MAX 200u /* characters of one */
#define TOOL_RULES_LIMITS_MAX 32u   /* budgets, or rates */
#define TOOL_RULES_COUNT_MAX 1000000000
#define TOOL_RULES_ARGUMENT_BYTES (1u << 20)
#define TOOL_RULES_RESULT_BYTES (64u << 20)
#define TOOL_RULES_CALL_MS 60000u
#define TOOL_RULES_APPROVE_MS 60000u

enum tool_rules_default { TOOL_RULES_READ_ONLY, TOOL_RULES_ALL, TOOL_RULES_NONE };

struct tool_rules_limit {
	const char *pattern; /* borrowed from the rules' source */
	uint64_t most;       /* calls, in all or in a minute */
};

struct tool_rules {
	json_t *source;                 /* all of it; owned; NULL: no rules */
	json_t *allow, *deny, *approve; /* lists in it, or NULL */
	struct tool_rules_limit *budgets, *rates;
	size_t n_budgets, n_rates;
	uint64_t argument_bytes, result_bytes; /* the most */
	uint64_t call_ms, approve_ms;
	enum tool_rules_default otherwise;
	bool narrows; /* a sandbox's */
};

/*
 * tool_rules_parse() - @source: an object, or NULL: no rules, only the defaults. A reference to it
 * is kept.
 * @sandbox: the name of a sandbox's server and a dot begin each pattern, and there is no `default`.
 * @where: how errors call it, as in "mcpServers.github.caisson".
 * Return: 0 or -EINVAL, -ENOMEM with the key and the fix in @e.
 */
int tool_rules_parse(json_t *source, bool sandbox, const char *where, struct tool_rules *ret,
		     struct err *e);
void tool_rules_free(struct tool_rules *r); /* idempotent */

/* ---- what was used so far ------------------------------------------------------------------ */

/* Of one set of rules in one sandbox. */
struct tool_usage {
	uint64_t *spent;  /* by budget */
	uint64_t *tokens; /* by rate: thousandths of calls that are left */
	uint64_t *at_ns;  /* by rate: when that was so */
};

/* tool_usage_init() - @spent: of each budget already. False without memory. */
bool tool_usage_init(struct tool_usage *u, const struct tool_rules *r, uint64_t spent,
		     uint64_t now_ns);
void tool_usage_free(struct tool_usage *u); /* idempotent */

/* ---- one call ------------------------------------------------------------------------------ */

struct tool_rules_layer {
	const struct tool_rules *rules;
	struct tool_usage *usage; /* NULL: budgets and rates are not looked at */
};

struct tool_rules_call {
	const char *server, *tool;
	size_t argument_bytes;
	bool read_only; /* its server declares so */
};

enum tool_verdict { TOOL_RULES_MAY, TOOL_RULES_ASK, TOOL_RULES_MAY_NOT };

struct tool_decision {
	enum tool_verdict verdict;
	const char *code; /* of a refusal: refused, too_large, budget, rate */
	char rule[TOOL_RULES_PATTERN_MAX + 200];
	char message[TOOL_RULES_PATTERN_MAX + 800];
	uint64_t retry_ms; /* rate */
};

/* tool_rules_decide() - Whether the call may be made now. Spends nothing. */
void tool_rules_decide(const struct tool_rules_layer *operator_,
		       const struct tool_rules_layer *sandbox, const struct tool_rules_call *c,
		       uint64_t now_ns, struct tool_decision *ret);
/* tool_rules_spend() - It is made: count it. */
void tool_rules_spend(const struct tool_rules_layer *operator_,
		      const struct tool_rules_layer *sandbox, const struct tool_rules_call *c,
		      uint64_t now_ns);

#endif
