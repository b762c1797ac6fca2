/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leash.h - Which tools of other servers code may call, how often, and after whose word. Pure.
 *
 * Two sets of rules hold at once: the operator's for a server (the member `caisson` of its entry in
 * mcpServers, patterns of tools), and those of a sandbox (`tools` of its spec, patterns of server.tool), which can
 * only take away. In this order, the first that objects is the answer:
 *
 *   deny            of either
 *   default, allow  of the operator: a tool that no `allow` names must be annotated as read-only (default
 *                   "read-only"), may be called anyway ("all"), or may not ("none")
 *   allow           of the sandbox: when there is one, it has to name the tool
 *   sizes, budgets, rates of both
 *   approve         of either: a person has to say yes
 *
 * That a tool is read-only is what its server says of it; an operator who does not believe that says "none".
 */
#ifndef CAISSON_MCP_LEASH_H
#define CAISSON_MCP_LEASH_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

#define LEASH_PATTERNS_MAX 64u /* in one list */
#define LEASH_PATTERN_MAX 200u /* characters of one */
#define LEASH_LIMITS_MAX 32u   /* budgets, or rates */
#define LEASH_COUNT_MAX 1000000000
#define LEASH_ARGUMENT_BYTES (1u << 20)
#define LEASH_RESULT_BYTES (64u << 20)
#define LEASH_CALL_MS 60000u
#define LEASH_APPROVE_MS 60000u

enum leash_default { LEASH_READ_ONLY, LEASH_ALL, LEASH_NONE };

struct leash_limit {
	const char *pattern; /* borrowed from the rules' source */
	uint64_t most;       /* calls, in all or in a minute */
};

struct leash_rules {
	json_t *source;                 /* all of it; owned; NULL: no rules */
	json_t *allow, *deny, *approve; /* lists in it, or NULL */
	struct leash_limit *budgets, *rates;
	size_t n_budgets, n_rates;
	uint64_t argument_bytes, result_bytes; /* the most */
	uint64_t call_ms, approve_ms;
	enum leash_default otherwise;
	bool narrows; /* a sandbox's */
};

/*
 * leash_parse() - @source: an object, or NULL: no rules, only the defaults. A reference to it is kept.
 * @sandbox: the name of a sandbox's server and a dot begin each pattern, and there is no `default`.
 * @where: how errors call it, as in "mcpServers.github.caisson".
 * Return: 0 or -EINVAL, -ENOMEM with the key and the fix in @e.
 */
int leash_parse(json_t *source, bool sandbox, const char *where, struct leash_rules *ret,
		struct err *e);
void leash_free(struct leash_rules *r); /* idempotent */
/* leash_check() - Whether an operator's rules can be parsed. */
int leash_check(json_t *source, const char *where, struct err *e);

/* ---- what was used so far ------------------------------------------------------------------------------ */

/* Of one set of rules in one sandbox. */
struct leash_usage {
	uint64_t *spent;  /* by budget */
	uint64_t *tokens; /* by rate: thousandths of calls that are left */
	uint64_t *at_ns;  /* by rate: when that was so */
};

/* leash_usage_init() - @spent: of each budget already. False without memory. */
bool leash_usage_init(struct leash_usage *u, const struct leash_rules *r, uint64_t spent,
		      uint64_t now_ns);
void leash_usage_free(struct leash_usage *u); /* idempotent */

/* ---- one call ------------------------------------------------------------------------------------------ */

struct leash_layer {
	const struct leash_rules *rules;
	struct leash_usage *usage; /* NULL: budgets and rates are not looked at */
};

struct leash_call {
	const char *server, *tool;
	size_t argument_bytes;
	bool read_only; /* so says its server */
};

enum leash_verdict { LEASH_MAY, LEASH_ASK, LEASH_MAY_NOT };

struct leash_decision {
	enum leash_verdict verdict;
	const char *code; /* of a refusal: refused, too_large, budget, rate */
	char rule[LEASH_PATTERN_MAX + 200];
	char message[LEASH_PATTERN_MAX + 800];
	uint64_t retry_ms; /* rate */
};

/* leash_decide() - May it be made now? Spends nothing. */
void leash_decide(const struct leash_layer *operator_, const struct leash_layer *sandbox,
		  const struct leash_call *c, uint64_t now_ns, struct leash_decision *ret);
/* leash_spend() - It is made: count it. */
void leash_spend(const struct leash_layer *operator_, const struct leash_layer *sandbox,
		 const struct leash_call *c, uint64_t now_ns);

#endif
