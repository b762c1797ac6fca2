/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parked.h - A modern call that has to ask its client something while its work goes on.
 *
 * The request is answered with the questions (mrtr.h), and the call goes on without a line of its
 * own: parked. The client sends the request again with its answers; the new call waits for the end
 * of the parked one, or for its next questions. One that nobody comes back for ends by itself, and
 * its result is kept for a few minutes.
 */
#ifndef CAISSON_FRONT_MCP_PARKED_H
#define CAISSON_FRONT_MCP_PARKED_H

#include <jansson.h>
#include <stdbool.h>

struct front;
struct mcp_call;

struct mcp_parked_ops {
	/* What is to be asked now: {key: {method, params}}; empty: nothing. */
	json_t *(*questions)(struct mcp_call *c);
	/* @responses: {key: answer}, borrowed; perhaps to questions that are not asked any more. */
	void (*answered)(struct mcp_call *c, const json_t *responses);
};

/* mcp_park() - There are questions. False: they can not be asked this way, and the call is as it
 * was. */
bool mcp_park(struct mcp_call *c, const struct mcp_parked_ops *ops);
/* mcp_parked_resume() - Before a handler: whether the request continues a parked one, and is dealt
 * with. */
bool mcp_parked_resume(struct mcp_call *c);
/* mcp_parked_end() - The daemon stops, and no call is under way. */
void mcp_parked_end(struct front *f);

#endif
