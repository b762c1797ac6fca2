/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve.h - From a request on the wire to its handler, and to its line in the log.
 */
#ifndef CAISSON_FRONT_SERVE_H
#define CAISSON_FRONT_SERVE_H

#include "front/http/auth.h"
#include "front/http/route.h"

struct front;
struct http_exchange;
struct idempotency;

/* What is known about an exchange from its head on; http_user() of every exchange. */
struct request_context {
	struct front *f;
	const struct route *route;
	struct route_params params;
	char owner[OWNER_MAX];
	const char *error;               /* the code of what was answered; NULL: no error */
	struct idempotency *idempotency; /* Idempotency-Key: where the answer goes; or NULL */
	void *work;                      /* the handler's */
	bool refused;                    /* the answer waits, see refuse.h */
	/* Of a route with content: pieces of it, and its end, until it was answered. */
	void (*body)(struct request_context *v, const char *data, size_t len);
	void (*body_end)(struct request_context *v);
	void (*gone)(struct request_context *v); /* the client went away before the answer; NULL:
						    nobody minds */
};

/* What wires above do for requests that are not their handler's yet. */
struct serve_hooks {
	/* A path below an open port: admitted by the port's own rules. Answers, unless it returns
	 * true. */
	bool (*admit_port)(struct front *f, struct http_exchange *x, struct request_context *v);
	/* As http_config.own_path. */
	size_t (*own_path)(const char *path, size_t len);
	/* Where a client gets a token, for a 401. Appends to @out, or nothing. */
	void (*challenge)(const struct front *f, const struct http_exchange *x, struct buf *out);
};

/* serve_setup() - Fill f->http. @hooks live as long as the process. */
void serve_setup(struct front *f, const struct serve_hooks *hooks);
struct request_context *context_of(const struct http_exchange *x);

#endif
