/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge.h - Whether a request is within the policy. Every request for a sandbox, an execution, a
 * tool or a package is checked here, whatever wire it came over.
 *
 * The functions that return an int give 0, or -1 with @ret: `policy_refused` for a request that is
 * never allowed, `policy_busy` for one that is too much at once; the message begins with the name
 * of the rule. A refusal is counted and recorded in the ledger. Without a policy all is allowed. An
 * existing sandbox goes on when a new policy would not allow it.
 */
#ifndef CAISSON_FRONT_POLICY_JUDGE_H
#define CAISSON_FRONT_POLICY_JUDGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "front/policy/rules.h"

struct admission;
struct refusal;
struct sandbox_spec;

/*
 * policy_lower() - Lower the defaults of the daemon to the ceilings of @owner. A sandbox without an
 * end gets the longest life that is allowed.
 */
void policy_lower(const struct admission *a, const char *owner, struct sandbox_spec *s);

/* policy_sandbox() - A sandbox with this spec is about to be made, or to run again. */
int policy_sandbox(struct admission *a, const char *owner, const struct sandbox_spec *s,
		   struct refusal *ret);

/* policy_image() - Whether @owner may use this image, host, dir:PATH or canonical; not counted.
 * policy_pull() - It is about to be pulled for @owner. */
bool policy_image(const struct admission *a, const char *owner, const char *image);
int policy_pull(struct admission *a, const char *owner, const char *image, struct refusal *ret);

/* policy_egress() - @list: canonical entries. policy_reaches(): one of them; not counted. */
int policy_egress(struct admission *a, const char *owner, const json_t *list, struct refusal *ret);
bool policy_reaches(const struct admission *a, const char *owner, const char *entry);

/* policy_mount() - How @owner may use the operator's mount at @place; not counted. */
enum rule_mount policy_mount(const struct admission *a, const char *owner, const char *place);

/* policy_extend() - A sandbox of age @age_s is to end @seconds from now. */
int policy_extend(struct admission *a, const char *owner, uint64_t age_s, uint64_t seconds,
		  struct refusal *ret);

/*
 * policy_execution() - Code or a command is about to be queued. @asked_ms: its time limit, 0 when
 * none is named; *ret_ms gets the one that holds.
 */
int policy_execution(struct admission *a, const char *owner, uint64_t asked_ms, uint64_t *ret_ms,
		     struct refusal *ret);

/*
 * policy_queue() - An execution of any wire is about to be queued: it counts, and *timeout_ms is
 * lowered to the ceiling. A request that names a longer time was refused before, by
 * policy_execution().
 */
int policy_queue(struct admission *a, const char *owner, uint64_t *timeout_ms, struct refusal *ret);

/* policy_process() - A process in the background: it counts, and has no time limit but its
 * sandbox's. */
int policy_process(struct admission *a, const char *owner, struct refusal *ret);

/* policy_package() - @name: in any spelling. For each package that would be installed, not only the
 * one asked for. */
int policy_package(struct admission *a, const char *owner, const char *name, struct refusal *ret);

/* policy_tool() - Whether @owner is shown this tool of MCP; policy_tool_call(): and may call it. */
bool policy_tool(const struct admission *a, const char *owner, const char *tool);
int policy_tool_call(struct admission *a, const char *owner, const char *tool, struct refusal *ret);

#endif
