/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mrtr.h - Questions to a modern client: a result that asks instead of answering, and the request
 * that comes again with what was asked for.
 *
 * The daemon keeps nothing between the rounds. What it has to remember the client carries as
 * requestState: sealed with a key of this process, and good only for the same owner, method and
 * parameters, for a while.
 */
#ifndef CAISSON_FRONT_MCP_MRTR_H
#define CAISSON_FRONT_MCP_MRTR_H

#include <jansson.h>
#include <stdbool.h>

struct buf;
struct mcp_call;

/* mcp_inputs_check() - Before a handler: fills c->state. False: something is wrong, and is
 * answered. */
bool mcp_inputs_check(struct mcp_call *c);
/* mcp_input() - What the client answered to the question @key, an object; or NULL. */
const json_t *mcp_input(const struct mcp_call *c, const char *key);
/*
 * mcp_inputs_ask() - Answer with questions. The call is over.
 * @requests: {key: {method, params}}; stolen. Those that the client can not answer are left out;
 * when it can answer none, that is the answer. @state: for c->state of the next round, stolen;
 * NULL: none.
 */
void mcp_inputs_ask(struct mcp_call *c, json_t *requests, json_t *state);
/* mcp_inputs_json() - The same as text, without sending it. False: it could not be written. Appends
 * to @out. */
bool mcp_inputs_json(struct mcp_call *c, json_t *requests, json_t *state, struct buf *out);

#endif
