/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input_request.h - Questions to a modern client: a result that asks instead of answering
 * (input_required), and the request that comes again with the answers.
 *
 * The daemon keeps nothing between the rounds. The client carries the state, as requestState:
 * sealed with a key of this process, and valid only for the same owner, method and parameters, for
 * 15 minutes.
 */
#ifndef CAISSON_FRONT_MCP_INPUT_REQUEST_H
#define CAISSON_FRONT_MCP_INPUT_REQUEST_H

#include <jansson.h>
#include <stdbool.h>

struct buf;
struct mcp_call;

/* mcp_inputs_check() - Before a handler: fills c->state. False: the call was answered with an
 * error. */
bool mcp_inputs_check(struct mcp_call *c);
/* mcp_input() - The client's answer to the question @key, an object; or NULL. */
const json_t *mcp_input(const struct mcp_call *c, const char *key);
/*
 * mcp_inputs_ask() - Answer with questions. The call is over.
 * @requests: {key: {method, params}}; stolen. Those that the client cannot answer are left out;
 * when it can answer none, that is the answer. @state: for c->state of the next round, stolen;
 * NULL: none.
 */
void mcp_inputs_ask(struct mcp_call *c, json_t *requests, json_t *state);
/* mcp_inputs_json() - The same as text, without sending it. False: it could not be written. Appends
 * to @out. */
bool mcp_inputs_json(struct mcp_call *c, json_t *requests, json_t *state, struct buf *out);

#endif
