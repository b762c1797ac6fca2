/* SPDX-License-Identifier: Apache-2.0 */
/*
 * approval_question.h - Ask the client whose call runs code to approve a tool call of that code.
 *
 * A legacy client gets elicitation/create on the stream of its call, a modern one gets its request
 * answered with input_required, and a task asks by tasks/get. A client that declared no elicitation
 * is not asked; the owner's other ways (REST, `caisson approve`) are open in every case.
 */
#ifndef CAISSON_FRONT_MCP_APPROVAL_QUESTION_H
#define CAISSON_FRONT_MCP_APPROVAL_QUESTION_H

struct approval;
struct mcp_call;

/* mcp_ask_approval() - @c: a call whose work is the execution that @a is of. */
void mcp_ask_approval(struct mcp_call *c, struct approval *a);

#endif
