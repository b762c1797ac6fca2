/* SPDX-License-Identifier: Apache-2.0 */
/*
 * consent.h - The client whose call runs code is asked for the word that a tool call of that code
 * waits for.
 *
 * In the way that the client knows: a legacy one gets elicitation/create on the stream of its call,
 * a modern one gets its request answered with input_required, and a task asks in its own way. One
 * that declared no elicitation is not asked, and the owner's other ways (REST, `caisson approve`)
 * are open all the same.
 */
#ifndef CAISSON_FRONT_MCP_CONSENT_H
#define CAISSON_FRONT_MCP_CONSENT_H

struct approval;
struct mcp_call;

/* mcp_consent_ask() - @c: a call whose work is the execution that @a is of. */
void mcp_consent_ask(struct mcp_call *c, struct approval *a);

#endif
