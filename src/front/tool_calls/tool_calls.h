/* SPDX-License-Identifier: Apache-2.0 */
/* tool_calls.h - Calls of tools from code: the servers that have the tools, and the calls that wait
 * for a person. */
#ifndef CAISSON_FRONT_TOOL_CALLS_TOOL_CALLS_H
#define CAISSON_FRONT_TOOL_CALLS_TOOL_CALLS_H

#include "front/tool_calls/upstream.h"

struct approval;
struct loop;
struct sandboxes;

struct tool_calls {
	struct loop *loop;          /* the daemon's */
	struct bridge_link *bridge; /* to the servers */
	struct upstreams upstreams; /* these servers, as they are known */
	struct approval *approvals; /* the newest first */
};

/* tool_calls_of() - Those of the code in @sandboxes. */
struct tool_calls *tool_calls_of(const struct sandboxes *sandboxes);

#endif
