/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refused_tools.c - The tools that the rules leave out of a server's list.
 *
 * A list without these tools looks like a server that lacks them. So the code that asks for the
 * list, the log and GET /v1/servers are told how many are missing, their names, and the rule that
 * refuses the first of them.
 */
#include "front/tool_calls/refused_tools.h"

#include <string.h>

#include "base/buf.h"
#include "front/tool_calls/upstream.h"
#include "mcp/tool_rules.h"

#define NAMES_MAX 500u /* bytes; further names are only counted */

static void decide(const struct upstream *u, const json_t *tool,
		   const struct tool_rules_layer *operator_, const struct tool_rules_layer *own,
		   struct tool_decision *d)
{
	const struct tool_rules_call c = { u->name,
					   json_string_value(json_object_get(tool, "name")), 0,
					   upstream_read_only(tool) };

	tool_rules_decide(operator_, own, &c, 0, d);
}

bool tool_callable(const struct upstream *u, const json_t *tool,
		   const struct tool_rules_layer *operator_, const struct tool_rules_layer *own)
{
	struct tool_decision d;

	decide(u, tool, operator_, own, &d);
	return d.verdict != TOOL_RULES_MAY_NOT;
}

size_t refused_tools(const struct upstream *u, const struct tool_rules_layer *operator_,
		     const struct tool_rules_layer *own, struct buf *note)
{
	static const struct tool_rules none = { .narrows = true };
	static const struct tool_rules_layer nothing = { &none, NULL };
	_buf_ struct buf names = BUF_INIT(NAMES_MAX);
	struct tool_decision d, first = { 0 };
	size_t i, n = 0;
	json_t *tool;

	json_array_foreach(u->tools, i, tool)
	{
		decide(u, tool, operator_, own ? own : &nothing, &d);
		if (d.verdict != TOOL_RULES_MAY_NOT)
			continue;
		if (n++ == 0)
			first = d;
		(void)buf_printf(&names, "%s%s", n == 1 ? "" : ", ",
				 json_string_value(json_object_get(tool, "name")));
	}
	if (n == 0)
		return 0;
	(void)buf_printf(note, "%zu of the %zu tools of %s may not be called: %s%s (rule: %s)", n,
			 json_array_size(u->tools), u->name, buf_str(&names),
			 names.err ? ", ..." : "", first.rule);
	if (strstr(first.rule, ".default "))
		(void)buf_printf(note,
				 "; the operator permits tools in mcpServers.%s.caisson.allow",
				 u->name);
	return n;
}
