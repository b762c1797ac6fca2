/* SPDX-License-Identifier: Apache-2.0 */
/* tool_artifacts.h - The files that an execution made or changed, as links in its result. */
#ifndef CAISSON_FRONT_MCP_TOOL_ARTIFACTS_H
#define CAISSON_FRONT_MCP_TOOL_ARTIFACTS_H

#include <stdint.h>

#include "front/mcp/tool.h"

struct sandbox;

/*
 * mcp_output_artifacts() - Look for them, add a link for each, and end the result with them.
 * @o: with the blocks so far and its object open, which gets a member `files`. It is taken.
 * @since_ns: by the clock of files (time_files_ms()); what changed since then counts.
 */
void mcp_output_artifacts(struct mcp_call *c, struct sandbox *s, struct mcp_output *o,
			  int64_t since_ns, bool is_error);

#endif
