/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prompts.h - Texts that a person chooses and a model is given. The daemon has none of its own: it
 * offers those of mcp_additions (mcp.h), and announces prompts only where there are some.
 */
#ifndef CAISSON_FRONT_MCP_PROMPTS_H
#define CAISSON_FRONT_MCP_PROMPTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct mcp_call;

#define MCP_PROMPT_ARGS_MAX 4

struct mcp_prompt {
	const char *name, *title, *description;
	/* All are strings, and needed. Ends with name NULL. */
	struct {
		const char *name, *description;
	} args[MCP_PROMPT_ARGS_MAX];
	/* @args: an object of strings, borrowed. Answers. */
	void (*get)(struct mcp_call *c, const json_t *args);
	/* The i-th value that begins with @value, for completion; NULL after the last. May be NULL.
	 */
	const char *(*complete)(const char *arg, const char *value, size_t i);
};

/* mcp_prompts_any() - Whether this daemon offers one. */
bool mcp_prompts_any(void);

#endif
