/* SPDX-License-Identifier: Apache-2.0 */
/* tool_spool.h - A part of what was written, as a result. For tool_output_read.c and
 * tool_processes.c. */
#ifndef CAISSON_FRONT_MCP_TOOL_SPOOL_H
#define CAISSON_FRONT_MCP_TOOL_SPOOL_H

#include <jansson.h>
#include <stdbool.h>

#include "front/mcp/call.h"

struct json;
struct spool;

#define SPOOL_PART 16384 /* bytes, unless told */
#define SPOOL_PART_MAX 262144

/*
 * mcp_output_spool() - Bytes of @s from args.offset, at most args.limit. @ended: no more will come.
 * @more: further members of the structured result, or NULL. The call is over.
 */
void mcp_output_spool(struct mcp_call *c, const struct spool *s, const json_t *args, bool ended,
		      void (*more)(struct json *j, const void *arg), const void *arg);

/* Fields of such tools. */
#define MCP_OFFSET_FIELD                                                                           \
	{                                                                                          \
		.name = "offset", .kind = FIELD_INTEGER, .min = 0, .max = 9007199254740991.0,      \
		.description = "Byte to begin with: next_offset of the answer before.",            \
		.fallback = "0"                                                                    \
	}
#define MCP_LIMIT_FIELD                                                                            \
	{                                                                                          \
		.name = "limit", .kind = FIELD_INTEGER, .min = 1, .max = SPOOL_PART_MAX,           \
		.description = "Most bytes to return.", .fallback = "16384"                        \
	}
#define MCP_STREAM_FIELD                                                                           \
	{                                                                                          \
		.name = "stream", .kind = FIELD_STRING, .values = mcp_streams,                     \
		.description = "Which of the two.", .fallback = "\"stdout\""                       \
	}
extern const char *const mcp_streams[];

/* mcp_is_stderr() - Which one the arguments name. */
bool mcp_is_stderr(const json_t *args);

#endif
