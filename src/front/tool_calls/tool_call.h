/* SPDX-License-Identifier: Apache-2.0 */
/* tool_call.h - One call of another server's tool, from a cell's request to its answer. */
#ifndef CAISSON_FRONT_CODE_TOOL_CALL_H
#define CAISSON_FRONT_CODE_TOOL_CALL_H

#include <jansson.h>

struct rpc;

/* tool_call_run() - The operation mcp.call. */
void tool_call_run(struct rpc *r, const json_t *m);

#endif
