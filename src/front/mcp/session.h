/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.h - A legacy client between its handshake and its end.
 *
 * Made by `initialize`. Over HTTP it is named by Mcp-Session-Id and ends with DELETE or when nobody
 * used it for an hour, or when its owner begins one session too many and this one is idle for
 * longest (no stream and no call under way); on a channel of its own (channel.h) it ends with that.
 * It belongs to the owner that made it; for others it does not exist. Sandboxes outlive it: they
 * have names and an owner of their own.
 */
#ifndef CAISSON_FRONT_MCP_SESSION_H
#define CAISSON_FRONT_MCP_SESSION_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "front/http/token.h" /* OWNER_MAX */
#include "net/loop.h"

struct buf;
struct mcp;
struct mcp_call;
struct mcp_replay;
struct mcp_session;

/* Where messages that belong to no request go. */
struct mcp_outlet {
	void (*send)(struct mcp_session *s, const struct buf *json);
	/* The session is over: nothing is sent any more. */
	void (*ended)(struct mcp_session *s);
};

struct mcp_session {
	struct mcp *mcp;
	struct mcp_session *prev, *next;
	char id[33];
	char owner[OWNER_MAX];
	const char *version;        /* static; what was agreed on */
	json_t *capabilities;       /* the client's, or NULL */
	struct mcp_replay *replays; /* streams that may be resumed */
	size_t n_replays;
	uint64_t streams;                /* there were so far */
	uint64_t tools;                  /* of its owner, when it was told last */
	bool stale;                      /* its resources are others (subscribe.h) */
	json_t *subscriptions;           /* addresses of resources as keys, or NULL */
	int log_level;                   /* -1: none asked for */
	bool initialized;                /* the client has said so */
	const struct mcp_outlet *outlet; /* NULL: nobody listens */
	void *at;                        /* the outlet's */
	struct timer idle;
	uint64_t asked;                 /* requests to the client so far */
	struct mcp_question *questions; /* to the client, without an answer yet */
};

/* mcp_session_new() - An idle session of @owner may end for it. NULL: there are too many, or no
 * memory. */
struct mcp_session *mcp_session_new(struct mcp *mcp, const char *owner);
struct mcp_session *mcp_session_find(struct mcp *mcp, const char *owner, const char *id);
/* The error for the client when mcp_session_new() has returned NULL. */
#define MCP_SESSIONS_FULL                                                                          \
	"there are too many sessions (an owner has at most 256, and the daemon 1024): end some"
/* mcp_session_touch() - It was used. */
void mcp_session_touch(struct mcp_session *s);
/* mcp_session_end() - Cancel its calls, tell the outlet, forget it. */
void mcp_session_end(struct mcp_session *s);

/* mcp_session_send() - A notification; lost when nobody listens. @params: an object or NULL. */
void mcp_session_send(struct mcp_session *s, const char *method, const struct buf *params);

/* ---- questions to the client, on the stream of one of its calls ---------------------------- */

/* The struct is the asker's. */
struct mcp_question {
	/* Exactly one of @result and @error, borrowed. Not called when the call or the session ends
	 * first. */
	void (*answered)(struct mcp_question *q, const json_t *result, const json_t *error);
	void *arg;
	uint64_t id;
	struct mcp_session *session; /* NULL: not asked, or answered */
	struct mcp_question *next;
};

/* mcp_ask() - Send the request @method to the client of @c, which has a session. @params: an
 * object. */
void mcp_ask(struct mcp_call *c, struct mcp_question *q, const char *method,
	     const struct buf *params);
void mcp_unask(struct mcp_question *q); /* idempotent */
/* mcp_session_response() - The client has answered something. False: nothing that was asked. */
bool mcp_session_response(struct mcp_session *s, const json_t *id, const json_t *result,
			  const json_t *error);
/* mcp_session_unanswered() - The client will answer nothing any more: what was asked gets an error.
 */
void mcp_session_unanswered(struct mcp_session *s);

#endif
