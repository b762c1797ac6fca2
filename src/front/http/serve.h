/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve.h - From a request on the wire to its handler, and to its line in the log.
 */
#ifndef CAISSON_FRONT_SERVE_H
#define CAISSON_FRONT_SERVE_H

#include <jansson.h>

#include "front/http/auth.h"
#include "front/http/route.h"
#include "front/http/stream_out.h"
#include "net/http.h"

struct idempotency;

/* The state of an exchange from its head on; http_user() of every exchange. */
struct request_context {
	struct server *server;
	const struct route *route;
	struct route_params params;
	char owner[OWNER_MAX];
	const char *error;               /* the code of what was answered; NULL: no error */
	struct idempotency *idempotency; /* Idempotency-Key: where the answer goes; or NULL */
	void *work;                      /* the handler's */
	json_t *fields;                  /* request_fields(); until the handler returns */
	bool refused;                    /* the answer waits, see serve_refuse() */
	/* Events have begun before the answer is known (stream_out_prelude()); of this execution,
	 * if it is not empty. */
	enum stream_format prelude;
	char execution_id[33];
	/* Of a route with content: pieces of the body, and its end, until it was answered. */
	void (*body)(struct request_context *v, const char *data, size_t len);
	void (*body_end)(struct request_context *v);
	void (*gone)(struct request_context *v); /* the client left before the answer; or NULL */
};

/* Functions of the wires above, for requests that have no handler yet. */
struct serve_hooks {
	/* The caller's sandbox of the first path parameter. NULL: answered. */
	struct sandbox *(*own_sandbox)(struct services *services, struct http_exchange *x);
	/* Whether the request has what it needs before it is handled. False: it was answered, or
	 * serve_again() follows. */
	bool (*ready)(struct services *services, struct http_exchange *x);
	/* A path below an open port: admitted by the port's own rules. False: answered. */
	bool (*admit_port)(struct services *services, struct http_exchange *x,
			   struct request_context *v);
	/* As http_config.own_path. */
	size_t (*own_path)(const char *path, size_t len);
	/* Where a client gets a token, for a 401. Appends to @out, or nothing. */
	void (*challenge)(const struct mcp *mcp, const struct http_exchange *x, struct buf *out);
};

/* The HTTP side of the daemon. */
struct server {
	struct daemon *daemon;
	struct loop *loop; /* the daemon's */
	struct keep *keep; /* of listening sockets, for the next front */
	struct auth *auth;
	struct systemd *systemd; /* the service manager, if one started the daemon */
	struct http_config http;
	struct listener *listeners[2];
	const struct serve_hooks *hooks;
	/* States of the wires, for their handlers. */
	struct services *services;
	struct mcp *mcp;
	struct notebooks *notebooks;
};

/* serve_setup() - Fill server->http. */
void serve_setup(struct server *server);

/*
 * serve_refuse() - In on_head, which then returns http_status(). A wrong token from an address that
 * guesses (429) is answered a second later, and nothing of its body is read: each connection of a
 * guesser tries one token in a second.
 * @metadata: see reply_verdict()
 */
void serve_refuse(struct http_exchange *x, const struct auth_verdict *verdict,
		  const char *metadata);

/* serve_again() - Handle a request that was not ready, with its @fields. */
void serve_again(struct http_exchange *x, json_t *fields);

struct request_context *context_of(const struct http_exchange *x);
/* context_param() - The value of the i-th {name} part of its path. */
const char *context_param(const struct http_exchange *x, size_t i);
/* context_text() - The string field @name of the request, or NULL; while the handler is called. */
const char *context_text(const struct http_exchange *x, const char *name);
/* context_number() - The same of an integer, or @fallback. */
uint64_t context_number(const struct http_exchange *x, const char *name, uint64_t fallback);
/* context_wait() - The handler answers later. @gone is called if the client leaves before that. */
void context_wait(struct http_exchange *x, void *work, void (*gone)(struct request_context *v));
/* context_execution() - The id that was announced for the execution, if one was, instead of @id. */
void context_execution(const struct http_exchange *x, char id[33]);
/* context_done() - The handler answers now: @gone is not called any more. @x: may be NULL. Return:
 * @x. */
struct http_exchange *context_done(struct http_exchange *x);

#endif
