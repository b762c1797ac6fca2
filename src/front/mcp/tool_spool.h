/* SPDX-License-Identifier: Apache-2.0 */
/* tool_spool.h - A part of an output as a result, for executions and processes. */
#ifndef CAISSON_FRONT_MCP_TOOL_SPOOL_H
#define CAISSON_FRONT_MCP_TOOL_SPOOL_H

#include <jansson.h>
#include <stdbool.h>

#include "front/mcp/call.h"

struct json;
struct spool;

#define SPOOL_PART 16384 /* bytes, unless told */

/*
 * mcp_output_spool() - Bytes of @s from args.offset, at most args.limit. @ended: no more will come.
 * @more: further members of the structured result, or NULL. The call is over.
 */
void mcp_output_spool(struct mcp_call *c, const struct spool *s, const json_t *args, bool ended,
		      void (*more)(struct json *j, const void *arg), const void *arg);

/* mcp_is_stderr() - Which one the arguments name. */
bool mcp_is_stderr(const json_t *args);

#endif
