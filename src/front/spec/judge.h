/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge.h - Whether a request is within the policy. Every road to a sandbox, an execution, a tool
 * or a package asks here.
 *
 * The functions that return an int give 0, or -1 with @ret: 403 `policy_refused` for what is never
 * allowed, 429 `policy_busy` for what is too much at once; the message begins with the name of the
 * rule. A refusal is counted and in the ledger. Without a policy all is allowed. What exists
 * already goes on when a new policy would not allow it.
 */
#ifndef CAISSON_FRONT_POLICY_JUDGE_H
#define CAISSON_FRONT_POLICY_JUDGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "front/policy/rules.h"

struct front;
struct refusal;
struct sandbox_spec;

/*
 * policy_lower() - What @owner gets who asks for nothing: the daemon's own, but never more than the
 * owner's ceilings. A sandbox that names no end gets the longest life there is.
 */
void policy_lower(const struct front *f, const char *owner, struct sandbox_spec *s);

/* policy_sandbox() - One with this spec is about to be made, or to run again. */
int policy_sandbox(struct front *f, const char *owner, const struct sandbox_spec *s,
		   struct refusal *ret);

/* policy_egress() - @list: canonical entries. policy_reaches(): one of them; not counted. */
int policy_egress(struct front *f, const char *owner, const json_t *list, struct refusal *ret);
bool policy_reaches(const struct front *f, const char *owner, const char *entry);

/* policy_mount() - What @owner may do with the operator's mount at @place; not counted. */
enum rule_mount policy_mount(const struct front *f, const char *owner, const char *place);

/* policy_extend() - A sandbox that is @age_s old is to end @seconds from now. */
int policy_extend(struct front *f, const char *owner, uint64_t age_s, uint64_t seconds,
		  struct refusal *ret);

/*
 * policy_execution() - Code or a command is about to be queued. @asked_ms: its time limit, 0 when
 * none is named; *ret_ms gets the one that holds.
 */
int policy_execution(struct front *f, const char *owner, uint64_t asked_ms, uint64_t *ret_ms,
		     struct refusal *ret);

/*
 * policy_queue() - Whatever road it came by: it counts, and *timeout_ms is lowered to what there
 * may be. Whoever named a time has been told so before, by policy_execution().
 */
int policy_queue(struct front *f, const char *owner, uint64_t *timeout_ms, struct refusal *ret);

/* policy_process() - A process in the background: it counts, and has no time limit but its
 * sandbox's. */
int policy_process(struct front *f, const char *owner, struct refusal *ret);

/* policy_package() - @name: in any spelling. For each package that would be installed, not only the
 * one asked for. */
int policy_package(struct front *f, const char *owner, const char *name, struct refusal *ret);

/* policy_tool() - Whether @owner is shown this tool of MCP; policy_tool_call(): and may call it. */
bool policy_tool(const struct front *f, const char *owner, const char *tool);
int policy_tool_call(struct front *f, const char *owner, const char *tool, struct refusal *ret);

#endif
