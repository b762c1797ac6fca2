/* SPDX-License-Identifier: Apache-2.0 */
/*
 * code.h - Code mode of one sandbox: which servers, under which rules, and what was used of them so
 * far.
 *
 * Only a sandbox that was made with `servers` has it (sandbox.code). Budgets are of the sandbox and
 * count over all of its executions; when a front takes a sandbox over from one that was killed,
 * each budget is charged with all calls that there were, so that a crash never gives a call back.
 */
#ifndef CAISSON_FRONT_CODE_CODE_H
#define CAISSON_FRONT_CODE_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "mcp/tool_rules.h"

struct execution;
struct json;
struct kept_search;
struct sandbox;
struct upstream;

struct code {
	struct tool_rules rules; /* the sandbox's own */
	struct tool_usage usage;
	struct tool_usage *by_server; /* of the operator's rules, in the order of the spec */
	size_t n_servers;
	uint64_t tokens, at_ns; /* requests that may come now, in thousandths */
	size_t held;            /* bytes of results that wait to be read */
	int64_t notes; /* bytes that may be kept or read now; less than 0: too much was, wait
			  (ops.c) */
	uint64_t notes_ns;
	struct kept_search *search; /* made by the first question (ops_search.c) */
};

/* code_open() - What @s has of it, made at its first use; NULL: it has no code mode, or no memory.
 */
struct code *code_open(struct sandbox *s);
void code_close(struct sandbox *s); /* idempotent */

/* code_server() - One of the sandbox's servers; NULL: not one of its. @ret: the operator's rules
 * and their use. */
struct upstream *code_server(struct sandbox *s, const char *name, struct tool_rules_layer *ret);
/* code_layer() - The sandbox's own rules. */
struct tool_rules_layer code_layer(struct code *c);

/* code_may_ask() - Whether one more request comes in time: floods are refused. */
bool code_may_ask(struct code *c, uint64_t now_ns);

/* code_write() - The servers, for a kernel, with each execution: the member `mcp`, or nothing. */
void code_write(const struct execution *x, struct json *j);

#endif
