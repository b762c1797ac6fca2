/* SPDX-License-Identifier: Apache-2.0 */
/*
 * subscribe.h - Subscriptions of clients to changes.
 *
 * A modern client holds a call of `subscriptions/listen` open, which names the changes that it
 * wants; a legacy one gets changes of lists on its session's stream, and of resources that it
 * subscribed to. A part of the daemon that changes something reports it here, and this file sends
 * it to the subscribers. No owner gets notifications about another owner's things.
 */
#ifndef CAISSON_FRONT_MCP_SUBSCRIBE_H
#define CAISSON_FRONT_MCP_SUBSCRIBE_H

#include <jansson.h>
#include <stdbool.h>

struct mcp;

enum mcp_list { MCP_LIST_TOOLS, MCP_LIST_PROMPTS, MCP_LIST_RESOURCES, MCP_LISTS_ };

/* mcp_list_lives() - Whether a list can change while the daemon runs: whether it is worth a
 * subscription. */
bool mcp_list_lives(const struct mcp *mcp, enum mcp_list list);
/* mcp_list_changed() - To everybody who asked. */
void mcp_list_changed(struct mcp *mcp, enum mcp_list list);
/* mcp_sandboxes_changed() - @owner has one more, or one less, and so other resources. Told in a
 * moment, once for all of it. */
void mcp_sandboxes_changed(struct mcp *mcp, const char *owner);
/* mcp_policy_changed() - Another policy is in force: notify owners that have other tools now. */
void mcp_policy_changed(struct mcp *mcp);
/* mcp_resource_updated() - Its content is another. @owner: whose it is; NULL: everybody's. */
void mcp_resource_updated(struct mcp *mcp, const char *owner, const char *uri);
/* mcp_resource_wanted() - Whether anybody of @owner subscribed to it: whether to watch it at all.
 */
bool mcp_resource_wanted(const struct mcp *mcp, const char *owner, const char *uri);
/* mcp_task_told() - @task: as tasks/get shows it; stolen. */
void mcp_task_told(struct mcp *mcp, const char *owner, const char *id, json_t *task);

/* mcp_subscriptions_end() - Every one, with the answer that a client takes for an end. */
void mcp_subscriptions_end(struct mcp *mcp);

#endif
