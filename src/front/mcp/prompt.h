/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prompt.h - Texts that a person chooses and a model is given. The daemon has none of its own. It
 * offers those of extra.h, and announces prompts only where there are some.
 */
#ifndef CAISSON_FRONT_MCP_PROMPT_H
#define CAISSON_FRONT_MCP_PROMPT_H

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
	/* What begins with @value, for completion; NULL after the last, as @complete itself may be.
	 */
	const char *(*complete)(const char *arg, const char *value, size_t i);
};

/* mcp_prompts_any() - Whether this daemon offers one. */
bool mcp_prompts_any(void);
const struct mcp_prompt *mcp_prompt_find(const char *name);

#endif
