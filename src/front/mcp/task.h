/* SPDX-License-Identifier: Apache-2.0 */
/*
 * task.h - Calls that outlive the request they came with: the extension
 * io.modelcontextprotocol/tasks.
 *
 * The daemon decides: a call of a tool that may take long becomes a task when it is not done after
 * a few seconds and its client said that it knows tasks. The handler notices nothing: its call goes
 * on, and the end of it is kept for tasks/get instead of being sent. A task belongs to its owner,
 * and is gone, code and all, when its time is over. An owner's oldest results make room for new
 * ones. When too many run, a call is answered as if there were no tasks.
 */
#ifndef CAISSON_FRONT_MCP_TASK_H
#define CAISSON_FRONT_MCP_TASK_H

#include <jansson.h>
#include <stdbool.h>

struct mcp;
struct mcp_call;
struct mcp_task;

#define MCP_TASKS "io.modelcontextprotocol/tasks"

/* mcp_task_find() - NULL: none, or it is another owner's. */
struct mcp_task *mcp_task_find(struct mcp *mcp, const char *owner, const char *id);

/* mcp_task_later() - In a while, if the call still runs then and the client knows tasks. */
void mcp_task_later(struct mcp_call *c);
/* mcp_task_begin() - Now. False: the client knows none, or there are too many; the call is as it
 * was. */
bool mcp_task_begin(struct mcp_call *c);
/*
 * mcp_task_ask() - Ask the client of a call that is a task. @requests: {key: {method, params}};
 * stolen.
 * @answered: called once, when there is an answer to each of them: {key: answer}, borrowed.
 */
void mcp_task_ask(struct mcp_call *c, json_t *requests,
		  void (*answered)(struct mcp_call *c, const json_t *responses));

/* mcp_is_task() - Whether the call is one by now; mcp_task_asks(): and waits for answers. */
bool mcp_is_task(const struct mcp_call *c);
bool mcp_task_asks(const struct mcp_call *c);

/* mcp_tasks_end() - The daemon stops. */
void mcp_tasks_end(struct mcp *mcp);

#endif
