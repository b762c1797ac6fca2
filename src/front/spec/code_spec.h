/* SPDX-License-Identifier: Apache-2.0 */
/* code_spec.h - The part of a SandboxSpec that is about other servers' tools: `servers`, `tools`
 * and `project`. */
#ifndef CAISSON_FRONT_CODE_CODE_SPEC_H
#define CAISSON_FRONT_CODE_CODE_SPEC_H

#include <jansson.h>
#include <stdbool.h>

struct admission;
struct json;
struct refusal;
struct sandbox_spec;

#define CODE_SERVERS_MAX 64

/* code_spec_parse() - The members of @body, which may be absent. 0, or -1 with @ret_why. */
int code_spec_parse(const struct admission *a, const json_t *body, struct sandbox_spec *ret,
		    struct refusal *ret_why);
/* code_same() - Whether two values of one of the members are the same; an absent one has its own
 * meaning. */
bool code_same(const json_t *a, const json_t *b);
/* code_spec_json() - Members of the object that @j is in. */
void code_spec_json(const struct sandbox_spec *s, struct json *j);

#endif
