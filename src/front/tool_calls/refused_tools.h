/* SPDX-License-Identifier: Apache-2.0 */
/* refused_tools.h - The tools of a server that may not be called: their number, names and rule. */
#ifndef CAISSON_FRONT_TOOL_CALLS_REFUSED_TOOLS_H
#define CAISSON_FRONT_TOOL_CALLS_REFUSED_TOOLS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct buf;
struct tool_rules_layer;
struct upstream;

/* tool_callable() - Whether the rules let a tool be called, once or more often. Layers without
 * usage. */
bool tool_callable(const struct upstream *u, const json_t *tool,
		   const struct tool_rules_layer *operator_, const struct tool_rules_layer *own);

/*
 * refused_tools() - How many of the tools that @u has listed may not be called. Layers as above.
 * @own: NULL: only the operator's rules count.
 * @note: empty; gets a sentence about them for people and models, if there are any.
 */
size_t refused_tools(const struct upstream *u, const struct tool_rules_layer *operator_,
		     const struct tool_rules_layer *own, struct buf *note);

#endif
