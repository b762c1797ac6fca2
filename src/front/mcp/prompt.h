/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prompt.h - Texts that a person chooses and a model is given. The daemon has none of its own: only those of
 * the conformance suite, and then says that it has prompts.
 */
#ifndef CAISSON_FRONT_MCP_PROMPT_H
#define CAISSON_FRONT_MCP_PROMPT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct front;
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
	/* What begins with @value, for completion; NULL after the last, as @complete itself may be. */
	const char *(*complete)(const char *arg, const char *value, size_t i);
};

/* Ends with name NULL. */
extern const struct mcp_prompt mcp_prompts_fixture[];

/* mcp_prompts_any() - Whether this daemon offers one. */
bool mcp_prompts_any(const struct front *f);
const struct mcp_prompt *mcp_prompt_find(const struct front *f, const char *name);

#endif
