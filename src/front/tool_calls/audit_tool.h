/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit_tool.h - Lines of the ledger about tool calls, before and after each, and about approvals.
 *
 * Of arguments and results it has hashes and sizes. Refusals are written one by one up to
 * AUDIT_REFUSALS_MAX of an execution, and counted in one line at its end: code that calls what it
 * may not in a loop does not fill the disk.
 */
#ifndef CAISSON_FRONT_CODE_AUDIT_TOOL_H
#define CAISSON_FRONT_CODE_AUDIT_TOOL_H

#include <stddef.h>
#include <stdint.h>

struct approval;
struct execution;
struct tool_decision;

#define AUDIT_REFUSALS_MAX 100u

struct audit_tool {
	const struct execution *x;
	const char *id, *server, *tool;
};

/* audit_tool_begin() - It is about to be made, or to wait for a person. 0, or -1: it must not be.
 */
int audit_tool_begin(const struct audit_tool *a, const char *arguments, size_t len,
		     const struct tool_decision *d);
/* audit_tool_end() - One follows each begin. @outcome: ok, tool_error, or the code of an error.
 * @result NULL: none. */
void audit_tool_end(const struct audit_tool *a, const char *outcome, const char *result, size_t len,
		    uint64_t took_ns);
/* audit_tool_refused() - It was never begun. */
void audit_tool_refused(struct execution *x, const char *server, const char *tool, const char *code,
			const char *rule);
/* audit_tools_over() - The execution is: the refusals and malformed requests that have no line of
 * their own. */
void audit_tools_over(const struct execution *x);

void audit_approval_begin(const struct approval *a, const char *call);
void audit_approval_end(const struct approval *a, const char *outcome, const char *by,
			const char *reason);

#endif
