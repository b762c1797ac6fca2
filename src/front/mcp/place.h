/* SPDX-License-Identifier: Apache-2.0 */
/* place.h - The sandbox that a tool's session_id names. */
#ifndef CAISSON_FRONT_MCP_PLACE_H
#define CAISSON_FRONT_MCP_PLACE_H

#include <jansson.h>

struct mcp_call;
struct sandbox;

/*
 * mcp_place() - The caller's sandbox of this name that runs; one that is not there is made, as by
 * its first execution. NULL: answered with why not.
 */
struct sandbox *mcp_place(struct mcp_call *c, const json_t *args);

/* mcp_place_find() - The same, but nothing is made. */
struct sandbox *mcp_place_find(struct mcp_call *c, const json_t *args);

/* The field of tools that work in a session. */
#define MCP_SESSION_FIELD                                                                          \
	{                                                                                          \
		.name = "session_id", .kind = FIELD_STRING, .required = true, .min = 1,            \
		.max = NAME_LENGTH_MAX, .pattern = NAME_PATTERN, .check = name_ok,                 \
		.description =                                                                     \
			"Any name of yours, as in analysis-1. Calls with the same one share "      \
			"variables and files; it is made by its first call."                       \
	}

#endif
