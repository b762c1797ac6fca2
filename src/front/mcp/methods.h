/* SPDX-License-Identifier: Apache-2.0 */
/* methods.h - What a client may ask for: one function per row of the table in methods.c. */
#ifndef CAISSON_FRONT_MCP_METHODS_H
#define CAISSON_FRONT_MCP_METHODS_H

struct mcp_call;
struct mcp_message;
struct mcp_session;
struct front;

/* Each answers, now or later. */
void mcp_method_initialize(struct mcp_call *c); /* fills the session that came with it */
void mcp_method_discover(struct mcp_call *c);
void mcp_method_ping(struct mcp_call *c);
void mcp_method_set_level(struct mcp_call *c);
void mcp_method_tools_list(struct mcp_call *c);
void mcp_method_tools_call(struct mcp_call *c);
void mcp_method_resources_list(struct mcp_call *c);
void mcp_method_templates_list(struct mcp_call *c);
void mcp_method_resources_read(struct mcp_call *c);
void mcp_method_resources_subscribe(struct mcp_call *c);
void mcp_method_resources_unsubscribe(struct mcp_call *c);
void mcp_method_directory_read(struct mcp_call *c);
void mcp_method_skills_list(struct mcp_call *c);
void mcp_method_skills_get(struct mcp_call *c);
void mcp_method_prompts_list(struct mcp_call *c);
void mcp_method_prompts_get(struct mcp_call *c);
void mcp_method_complete(struct mcp_call *c);
void mcp_method_listen(struct mcp_call *c);
void mcp_method_tasks_get(struct mcp_call *c);
void mcp_method_tasks_update(struct mcp_call *c);
void mcp_method_tasks_cancel(struct mcp_call *c);

/* mcp_no_method() - There is no such method, or nothing here that it could be about. The call is
 * over. */
void mcp_no_method(struct mcp_call *c);

/* mcp_notified() - A notification of a client. @session: NULL on the modern wire; @at: the line it
 * came on. */
void mcp_notified(struct front *f, struct mcp_session *session, const void *at,
		  const struct mcp_message *m);

#endif
