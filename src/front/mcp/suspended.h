/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suspended.h - A modern call that has to ask its client something while its work goes on.
 *
 * The request is answered with the questions (input_request.h), and the call goes on without a line
 * of its own: suspended. The client sends the request again with its answers; the new call waits
 * for the end of the suspended one, or for its next questions. A suspended call whose client does
 * not come back ends by itself, and its result is kept for a few minutes.
 */
#ifndef CAISSON_FRONT_MCP_SUSPENDED_H
#define CAISSON_FRONT_MCP_SUSPENDED_H

#include <jansson.h>
#include <stdbool.h>

struct mcp;
struct mcp_call;

struct mcp_question_ops {
	/* The questions of now: {key: {method, params}}; may be empty. */
	json_t *(*questions)(struct mcp_call *c);
	/* @responses: {key: answer}, borrowed; perhaps to questions that are not asked any more. */
	void (*answered)(struct mcp_call *c, const json_t *responses);
};

/* mcp_suspend() - There are questions. False: they cannot be asked this way, and the call is as it
 * was. */
bool mcp_suspend(struct mcp_call *c, const struct mcp_question_ops *ops);
/* mcp_suspended_resume() - Before a handler: whether the request continues a suspended call; then
 * it waits for that call, or is answered. */
bool mcp_suspended_resume(struct mcp_call *c);
/* mcp_suspended_end() - The daemon stops, and no call is under way. */
void mcp_suspended_end(struct mcp *mcp);

#endif
