/* SPDX-License-Identifier: Apache-2.0 */
/* code_spec.h - The part of a SandboxSpec that is about other servers' tools: `servers`, `tools`
 * and `project`. */
#ifndef CAISSON_FRONT_CODE_CODE_SPEC_H
#define CAISSON_FRONT_CODE_CODE_SPEC_H

#include <jansson.h>
#include <stdbool.h>

#include "front/support/field.h" /* struct field */

struct front;
struct json;
struct refusal;
struct sandbox_spec;

#define CODE_SERVERS_MAX 64

/* The fields, for tables of routes and of tools. */
#define CODE_SERVERS_FIELD                                                                                        \
	{                                                                                                         \
		.name = "servers", .kind = FIELD_STRING_LIST, .max = CODE_SERVERS_MAX,                            \
		.description =                                                                                    \
			"MCP servers of the daemon's configuration whose tools its code may call. With an empty " \
			"list code has memory and saved tools, and nobody's tools.",                              \
		.example = "[\"github\"]"                                                                         \
	}
#define CODE_TOOLS_FIELD                                                                                                  \
	{                                                                                                                 \
		.name = "tools", .kind = FIELD_OBJECT,                                                                    \
		.description =                                                                                            \
			"Rules that take away from what the operator allows: `allow`, `deny` and `approve` are lists of " \
			"patterns of server.tool; `budget` (calls in all) and `rate` (calls in a minute) are numbers, "   \
			"or objects of numbers by pattern; `max_argument_bytes`, `max_result_bytes`, `call_seconds`, "    \
			"`approve_seconds`.",                                                                             \
		.example = "{\"allow\": [\"github.get_*\"], \"budget\": 20}"                                              \
	}
#define CODE_PROJECT_FIELD                                                                                                \
	{                                                                                                                 \
		.name = "project", .kind = FIELD_STRING, .max = 64,                                                       \
		.description =                                                                                            \
			"What its code keeps (memory, saved functions) is shared by your sandboxes of the same project. " \
			"Letters, digits, _ . and -; without it: default.",                                               \
		.example = "\"billing\""                                                                                  \
	}
#define CODE_SPEC_FIELDS CODE_SERVERS_FIELD, CODE_TOOLS_FIELD, CODE_PROJECT_FIELD

/* code_spec_parse() - The members of @body, which may be absent. 0, or -1 with @ret_why. */
int code_spec_parse(const struct front *f, const json_t *body, struct sandbox_spec *ret,
		    struct refusal *ret_why);
bool code_spec_equal(const struct sandbox_spec *a, const struct sandbox_spec *b);
/* code_spec_json() - Members of the object that @j is in. */
void code_spec_json(const struct sandbox_spec *s, struct json *j);

#endif
