/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp.h - State of the daemon for clients of the Model Context Protocol.
 */
#ifndef CAISSON_FRONT_MCP_MCP_H
#define CAISSON_FRONT_MCP_MCP_H

#include <stdbool.h>
#include <stddef.h>

#include "net/loop.h"

struct buf;
struct daemon;
struct json;
struct mcp_call;
struct mcp_prompt;
struct mcp_resource;
struct mcp_session;
struct mcp_subscription;
struct mcp_suspended;
struct mcp_task;
struct mcp_tool;
struct mcp_watch;
struct sandboxes;
struct services;

#define MCP_SESSIONS_MAX 1024u
#define MCP_SESSIONS_OWNER_MAX 256u /* the one that is idle for longest makes room */
#define MCP_KEY_BYTES 32

struct mcp {
	struct daemon *daemon;
	struct loop *loop; /* the daemon's */
	struct sandboxes *sandboxes;
	struct services *services;    /* the features of sandboxes */
	struct mcp_call *calls;       /* under way */
	struct mcp_session *sessions; /* of clients that shook hands */
	size_t n_sessions;
	struct mcp_subscription *subscriptions; /* of modern clients */
	size_t n_subscriptions;
	struct mcp_watch *watches; /* of files that somebody subscribed to */
	size_t n_watches;
	struct mcp_suspended *suspended; /* calls that wait for answers of their client */
	size_t n_suspended, suspended_bytes;
	struct mcp_task *tasks; /* the newest first */
	size_t n_tasks, tasks_bytes;
	struct timer news;                /* of lists, gathered (subscribe.h) */
	size_t replay_bytes;              /* of streams that may be resumed */
	unsigned char key[MCP_KEY_BYTES]; /* of this process: seals what clients keep for us */
};

/*
 * Tools, prompts and resources beside the daemon's own. The installed daemon has none; the program
 * that the protocol's conformance suite tests links in its own (tests/mcp/fixtures). All members
 * are set, or none.
 */
struct mcp_additions {
	const struct mcp_tool *const *tools; /* tables, ends with NULL */
	const struct mcp_prompt *prompts;
	const struct mcp_resource *resources;
};
extern const struct mcp_additions mcp_additions;

/* mcp_setup() - Before the first request. */
void mcp_setup(struct mcp *mcp);

/* mcp_server_info() - The object {name, version, ...}. */
void mcp_server_info(struct json *j);
/* mcp_note_json() - A whole notification; @params: an object, or NULL. Appends to @out. */
void mcp_note_json(struct buf *out, const char *method, const struct buf *params);

/* mcp_drain() - The daemon is about to stop: end what only waits, so that nobody waits for it. */
void mcp_drain(struct mcp *mcp);

/* mcp_end() - The daemon stops: end every session and what it waits for. */
void mcp_end(struct mcp *mcp);

#endif
