/* SPDX-License-Identifier: Apache-2.0 */
/*
 * code_text.h - A call of a tool that runs code: the execution's output, displays and end, as
 * blocks of the tool's result and as members of its object.
 *
 * Each part (two streams, the displays, the value of the last expression) has the daemon's bound of
 * an output: a longer one is cut, and both forms tell so.
 */
#ifndef CAISSON_FRONT_MCP_CODE_TEXT_H
#define CAISSON_FRONT_MCP_CODE_TEXT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct approval;
struct execution;
struct json;
struct mcp_call;
struct sandbox;

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

/* code_view_members() - `result` and `displays`, where there are any. */
void code_view_members(const struct code_view *v, struct json *j);

/* mcp_code_queue() - The call @c waits for @x, whose user it is, in @s. */
void mcp_code_queue(struct mcp_call *c, struct sandbox *s, struct execution *x);
/* mcp_code_approve() - For sink.approve. */
void mcp_code_approve(struct execution *x, struct approval *a);
/*
 * mcp_code_done() - For sink.done: answer the call with the refusal, or with the text of all that
 * can be read, the pictures and the object.
 * @strict: code that fails by itself is an error of the tool. Otherwise that is a result, which
 * clients show as it is; what ended the code from outside is an error in any case.
 * @write: begins the object and leaves it open, because files may follow
 */
void mcp_code_done(struct execution *x, bool strict,
		   void (*write)(const struct execution *x, const struct code_view *v,
				 struct json *j));

#endif
