/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bridge_link.h - The front's line to the bridge: calls of MCP servers out, answers in when they
 * come.
 *
 * Each call is a struct of the asker's with a function for the answer, which is called once and
 * never from inside bridge_call() or bridge_tools(). An asker that goes away first calls
 * bridge_cancel(). Arguments and results are JSON text and are not parsed here.
 * docs/protocol/bridge.md has the messages.
 */
#ifndef CAISSON_FRONT_CODE_BRIDGE_LINK_H
#define CAISSON_FRONT_CODE_BRIDGE_LINK_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "client/packet.h"
#include "net/loop.h"

struct bridge_call;
struct bridge_link;
struct config;
struct err;

/* A server, as the bridge tells of it. Texts live until the bridge's next hello. */
struct bridge_server {
	const char *name, *alias;
	const char *description; /* the operator's, or "" */
	const char *transport;   /* stdio, http, sse */
	const char *state;       /* idle, starting, ready, failed */
	json_t *rules;           /* member `caisson` of its entry, or NULL */
	json_t *source;          /* what all this is borrowed from */
};

struct bridge_answer {
	/* ok: the result, JSON text on one line. What @done wants to keep it takes out of the
	 * buffer. */
	bool ok;
	struct buf *text;
	bool is_error; /* of a call: the tool says that it failed */
	/* not ok: codes are those of docs/protocol/bridge.md; hint may be NULL */
	const char *code, *message, *hint;
};

struct bridge_call {
	void (*done)(struct bridge_call *c, const struct bridge_answer *a);
	void *arg;
	uint64_t id; /* 0: not under way */
	struct bridge_call *next;
};

struct bridge_link {
	struct loop *loop;
	struct watch watch; /* fd -1: no bridge, or it is gone */
	bool configured;    /* there was one */
	uint64_t last_id, life;
	struct bridge_call *calls; /* under way */
	struct packet_queue out;
	struct buf head, body; /* of the message that is being read */
	struct bridge_server *servers;
	size_t n_servers;
	/* A server's list of tools may be another now; all of them when @server is NULL. May be
	 * NULL. */
	void (*on_changed)(struct bridge_link *l, const struct bridge_server *server);
	void *arg;
};

/* bridge_wanted() - Whether the configuration asks for one. */
bool bridge_wanted(const struct config *c);

/* bridge_start() - Before the jail: start caisson-bridge. Return: the socket to it, or -errno. */
int bridge_start(const struct config *c, struct err *e);

/*
 * bridge_link_init() - @fd: the bridge's socket, ours from now on; -1: none, and every
 * call is refused. Waits for the hello. Fails when the bridge refuses its configuration, with its
 * words.
 */
int bridge_link_init(struct bridge_link *l, struct loop *loop, int fd, struct err *e);
/* bridge_link_free() - Calls that still wait get no answer. */
void bridge_link_free(struct bridge_link *l);

/* bridge_server() - By name, else by alias; NULL: unknown. */
const struct bridge_server *bridge_server(const struct bridge_link *l, const char *name);

/* bridge_tools() - The answer is {"tools":[...]}, as the server lists them. 0, -EPIPE, -ENOMEM,
 * -EBUSY. */
int bridge_tools(struct bridge_link *l, struct bridge_call *c, const char *server,
		 uint64_t timeout_ms, struct err *e);

/* bridge_call() - @arguments: JSON text of an object, on one line; borrowed. As bridge_tools(). */
int bridge_call(struct bridge_link *l, struct bridge_call *c, const char *server, const char *tool,
		const char *arguments, size_t len, uint64_t timeout_ms, struct err *e);

/* bridge_cancel() - Idempotent: afterwards @c->done is not called. Passed on to the server. */
void bridge_cancel(struct bridge_link *l, struct bridge_call *c);

#endif
