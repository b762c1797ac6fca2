/* SPDX-License-Identifier: Apache-2.0 */
/*
 * code_text.h - Output, displays and end of an execution, as blocks of a tool's result and as
 * members of its object.
 *
 * Each part (two streams, the displays, the value of the last expression) has the daemon's bound of
 * an output: a longer one is cut, and both forms tell so.
 */
#ifndef CAISSON_FRONT_MCP_CODE_TEXT_H
#define CAISSON_FRONT_MCP_CODE_TEXT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct execution;
struct json;
struct mcp_call;
struct mcp_output;

/* Bundles of an execution that is over, and what of them is text. */
struct code_view {
	json_t *displays;        /* in the order in which they were shown */
	json_t *result;          /* of the last expression; NULL: none */
	json_t *texts;           /* of displays, strings, within the bound */
	char *value;             /* text of the result; NULL: none */
	size_t value_len;        /* of it within the bound */
	size_t shown, displayed; /* bytes of texts that are there, and that there were */
	bool cut;                /* of any of it something is left out */
};

void code_view_open(struct code_view *v, const struct execution *x);
void code_view_close(struct code_view *v);
/* code_view_members() - `result` and `displays`, where there are any. */
void code_view_members(const struct code_view *v, struct json *j);

/* mcp_code_text() - The first block: all that can be read, and why it failed if it did. */
void mcp_code_text(const struct execution *x, const struct code_view *v, struct mcp_output *o);
/* mcp_code_images() - Those that it showed, and the result if that is one. */
void mcp_code_images(const struct code_view *v, struct mcp_output *o);

/* mcp_code_log() - How it ended, to a client that asked for messages: info, a warning when
 * something was lost, or an error. */
void mcp_code_log(struct mcp_call *c, const struct execution *x);

#endif
