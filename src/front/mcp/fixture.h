/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixture.h - What the protocol's conformance suite wants to find in a server: tools, prompts and resources
 * of fixed names that do nothing useful. Offered with --mcp-conformance alone.
 */
#ifndef CAISSON_FRONT_MCP_FIXTURE_H
#define CAISSON_FRONT_MCP_FIXTURE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct mcp_call;

/* One red pixel, and half a millisecond of silence. */
#define FIXTURE_PNG                                                                                \
	"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
#define FIXTURE_WAV "UklGRiwAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQgAAAAAAAAAAAAAAA=="

/* A row of a table of tools (tool.h). */
#define FIXTURE(name_, text, fields, fn)                                                           \
	{                                                                                          \
		.name = (name_), .title = (name_), .description = (text), .input = (fields),       \
		.hints = TOOL_READ_ONLY, .sets = TOOL_SET_CONFORMANCE, .run = (fn)                 \
	}

/* fixture_result() - A tool's result with this content, an array as JSON text. The call is over. */
void fixture_result(struct mcp_call *c, const char *content, bool is_error);
/* fixture_text() - The same with one block of text. */
void fixture_text(struct mcp_call *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* fixture_pause() - Go on later, unless the call is cancelled. @step: for whoever goes on. */
void fixture_pause(struct mcp_call *c, unsigned int ms, unsigned int step,
		   void (*then)(struct mcp_call *c, unsigned int step));

/* fixture_form() - A question with a form of one member: {method: elicitation/create, params}. */
json_t *fixture_form(const char *message, const char *member, const char *type);

#endif
