/* SPDX-License-Identifier: Apache-2.0 */
/* ops.h - The operations that code can ask the host for, by name. */
#ifndef CAISSON_FRONT_CODE_OPS_H
#define CAISSON_FRONT_CODE_OPS_H

#include <jansson.h>
#include <stdbool.h>

#include "front/tool_calls/memory.h"

struct kept_search;
struct tool_rules_layer;
struct rpc;
struct sandbox;
struct upstream;

/* ops_run() - Find the operation and begin it: it answers @r, now or later. */
void ops_run(struct rpc *r, const json_t *m);

void ops_search(struct rpc *r, const json_t *m);
void ops_search_free(struct kept_search *k);        /* NULL is fine */
void tool_call_run(struct rpc *r, const json_t *m); /* mcp.call: one call of a server's tool */

/* ops_place() - Where a sandbox's code keeps things. Borrowed from @s. */
struct memory_place ops_place(const struct sandbox *s);

#endif
