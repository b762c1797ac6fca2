/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire.h - A connection to a server: messages out, messages in.
 *
 * There are three: a program's pipes, Streamable HTTP, and the older pair of an event stream and
 * POST. The user's functions are never called from inside open or send; in each of them the wire
 * may be closed.
 */
#ifndef CAISSON_BRIDGE_WIRE_H
#define CAISSON_BRIDGE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct children;
struct err;
struct fetcher;
struct loop;
struct server_config;
struct wire;

/* Why a request will not be answered. */
struct wire_failure {
	int http;            /* status, or 0: it did not come to that */
	const char *message; /* as in "answered with HTTP status 502" */
	bool too_large;
	bool no_session; /* the server has forgotten the session: it did not read the request */
};

struct wire_user {
	/* One JSON text, perhaps a message; it may be written to. */
	void (*on_message)(void *arg, char *text, size_t len);
	void (*on_failure)(void *arg, uint64_t id, const struct wire_failure *f);
	/* The whole wire is over; close it. @why as in "ended with status 1". */
	void (*on_closed)(void *arg, const char *why);
	void *arg;
};

struct wire_message {
	const char *text;
	size_t len;
	uint64_t id;          /* of a request; 0: nothing answers it */
	const char *method;   /* or NULL: it is an answer itself */
	const char *name;     /* value of Mcp-Name, encoded; or NULL */
	char *const *headers; /* further ones, "Name: value"; ends with NULL; or NULL */
	const char *version;  /* of the protocol; NULL: it is not known yet */
	bool modern;
};

struct wire_ops {
	/* 0, -EBUSY: too much waits already, -ENOMEM. */
	int (*send)(struct wire *w, const struct wire_message *m, struct err *e);
	/* The answer is not wanted any more, or @answered: it is here. Closes a connection that is
	 * only for it. */
	void (*abandon)(struct wire *w, uint64_t id, bool answered);
	/* The handshake of a legacy server is over. @listen: it may send notifications. */
	void (*settle)(struct wire *w, const char *version, bool listen);
	/* Frees it. */
	void (*close)(struct wire *w);
};

struct wire {
	const struct wire_ops *ops;
	const struct server_config *config;
	struct wire_user user;
};

/* Shared by all wires. */
struct wire_base {
	struct loop *loop;
	struct children *children;
	struct fetcher *fetcher;
};

int wire_stdio_open(const struct wire_base *b, const struct server_config *s,
		    const struct wire_user *user, struct wire **ret, struct err *e);
int wire_http_open(const struct wire_base *b, const struct server_config *s,
		   const struct wire_user *user, struct wire **ret, struct err *e);
int wire_sse_open(const struct wire_base *b, const struct server_config *s,
		  const struct wire_user *user, struct wire **ret, struct err *e);

#endif
