/* SPDX-License-Identifier: Apache-2.0 */
/* admission.h - The measure of requests: the defaults of the daemon, its images and mounts, the
 * operator's policy and servers. */
#ifndef CAISSON_FRONT_SPEC_ADMISSION_H
#define CAISSON_FRONT_SPEC_ADMISSION_H

#include <stddef.h>

#include "front/cell/cells.h"

struct policy_now;
struct sandboxes;
struct tool_calls;

struct admission {
	struct cells *cells;
	struct policy_now *policy; /* the operator's rules */
	/* The sandboxes of @owner that run, and its executions, commands and processes; NULL: of
	 * all owners. */
	void (*count)(const struct sandboxes *sandboxes, const char *owner, size_t *ret_sandboxes,
		      size_t *ret_executions);
	const struct sandboxes *sandboxes; /* for count */
	/* The name of the i-th MCP server; NULL: none. */
	const char *(*server_name)(const struct tool_calls *calls, size_t i);
	const struct tool_calls *tool_calls; /* for server_name */
};

#endif
