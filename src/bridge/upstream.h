/* SPDX-License-Identifier: Apache-2.0 */
/*
 * upstream.h - One configured server: started when it is first needed, asked for its protocol
 * version, called, restarted.
 *
 * In four files: upstream_life.c (its life, with the handshakes of both eras), requests.c (requests
 * to it, calls of tools among them), answers.c (its messages), server_tools.c (its list of tools).
 */
#ifndef CAISSON_BRIDGE_UPSTREAM_H
#define CAISSON_BRIDGE_UPSTREAM_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "net/loop.h"
#include "wire/bridge.h"

struct children;
struct err;
struct fetcher;
struct front_link;
struct server_config;
struct upstream;
struct wire;

#define REQUESTS_MAX 256u
#define REQUEST_TEXT_MAX                                                                           \
	((size_t)BRIDGE_BODY_MAX + (256u << 10)) /* arguments, and what is around them */

/*
 * ---- A wire: a connection to a server, messages out, messages in --------------------------------
 *
 * There are three: a program's pipes, Streamable HTTP, and the older pair of an event stream and
 * POST. A wire passes messages and failures to its upstream: answers_message() for one JSON text,
 * perhaps a message, which may be written to; answers_failure() for a request that will not be
 * answered; wire_over() when the whole wire is over. It calls none of them from inside open or
 * send, and in each of them the wire may be closed.
 */

/* Why a request will not be answered. */
struct wire_failure {
	int http;            /* status, or 0: it did not come to that */
	const char *message; /* as in "answered with HTTP status 502" */
	bool too_large;
	bool no_session; /* the server has forgotten the session: it did not read the request */
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
	 * only for it. NULL: such a wire has no connection to close. */
	void (*abandon)(struct wire *w, uint64_t id, bool answered);
	/* The handshake of a legacy server is over. @listen: it may send notifications. Or NULL. */
	void (*settle)(struct wire *w, const char *version, bool listen);
	/* Frees it. */
	void (*close)(struct wire *w);
};

struct wire {
	const struct wire_ops *ops;
	struct upstream *up;
	bool dead; /* it was closed, and is freed soon */
	struct deferred bury;
};

/* wire_over() - The wire is over, unless it was closed. @why: as in "ended with status 1". */
void wire_over(struct wire *w, const char *why);
/* wire_bury() - It is closed; @fn frees it, as arg of the deferred, when no function of it runs. */
void wire_bury(struct wire *w, void (*fn)(struct deferred *d));

/* Shared by all wires. */
struct wire_base {
	struct loop *loop;
	struct children *children;
	struct fetcher *fetcher;
};

/* Each sets the upstream's wire. 0, or -errno with a message as in "its command is not in PATH". */
int wire_stdio_open(struct upstream *u, struct err *e);
int wire_http_open(struct upstream *u, struct err *e);
int wire_sse_open(struct upstream *u, struct err *e);

/* ---- the server ------------------------------------------------------------------------------ */

enum up_state { UP_IDLE, UP_STARTING, UP_READY, UP_FAILED };

/* Kinds of requests. */
enum ask {
	ASK_DISCOVER,   /* modern handshake */
	ASK_INITIALIZE, /* legacy handshake */
	ASK_LIST,       /* one page of tools */
	ASK_LISTEN,     /* modern: changes of the list */
	ASK_TOOLS,      /* the front wants the list; nothing of it is sent */
	ASK_CALL,
};

struct request {
	struct request *next;
	struct upstream *up;
	enum ask kind;
	uint64_t id;       /* on the wire; 0: not sent yet */
	uint64_t front_id; /* 0: the bridge's own */
	struct timer timer;
	uint64_t timeout_ms;
	/* a call */
	char *tool;
	struct buf arguments;
	char *state; /* requestState to repeat, as JSON text; or NULL */
	unsigned int rounds;
	bool progress, again;
	uint64_t progress_ns; /* when the last one was passed on */
};

struct upstream {
	const struct server_config *config;
	struct wire_base base;
	struct front_link *front;
	enum up_state state;
	struct wire *wire; /* NULL unless STARTING or READY */
	bool modern, legacy_only, use_sse, retried, listens, listing, relist;
	char version[16];
	uint64_t last_id;
	struct request *requests;
	size_t n_requests;
	struct timer timer; /* STARTING: patience; FAILED: back-off */
	unsigned int failures;
	uint64_t ready_ns;
	unsigned int nonsense; /* lines in a row that were no messages */
	/* tools: NULL until they were asked for */
	json_t *tools, *pages;
	char *tools_text; /* {"tools":[...]} */
	size_t tools_len, n_pages;
	uint64_t tools_until_ns; /* 0: until the server reports a change */
};

/* ---- for the worker ------------------------------------------------------------------------ */

void upstream_init(struct upstream *u, const struct server_config *s, const struct wire_base *b,
		   struct front_link *o);
/* upstream_end() - Close the wire, without a word to the front. */
void upstream_end(struct upstream *u);

void upstream_tools(struct upstream *u, uint64_t front_id, uint64_t timeout_ms);
/* upstream_call() - @arguments: taken out of the buffer. */
void upstream_call(struct upstream *u, uint64_t front_id, const char *tool, struct buf *arguments,
		   uint64_t timeout_ms, bool progress);
/* upstream_cancel() - Whether it was one of ours. */
bool upstream_cancel(struct upstream *u, uint64_t front_id);

/* ---- between its files --------------------------------------------------------------------- */

/* upstream_life.c */
void upstream_start(struct upstream *u);
/* upstream_fail() - End all its requests with @why ("ended with status 1"); rest for a while. */
void upstream_fail(struct upstream *u, const char *why);
/* upstream_reopen() - Close the wire and open it again; requests wait. */
void upstream_reopen(struct upstream *u);
/* upstream_renew() - The server has forgotten the session: begin a new one. */
void upstream_renew(struct upstream *u);

/* requests.c */
struct request *request_new(struct upstream *u, enum ask kind, uint64_t front_id,
			    uint64_t timeout_ms);
void request_free(struct request *r);
/* request_send() - @params: JSON text of an object without its last brace, so that _meta can
 * follow, or NULL. */
void request_send(struct request *r, const char *method, const char *params, const char *name,
		  char *const *headers);
/* request_fail() - Its end, with "NAME: MESSAGE" for the front. @hint: or NULL. */
void request_fail(struct request *r, const char *code, const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* request_find() - The oldest of a kind that was sent, or was not yet. */
struct request *request_find(const struct upstream *u, enum ask kind, bool sent);
/* upstream_abandon() - Of the wire, if there is one; see struct wire_ops. */
void upstream_abandon(struct upstream *u, uint64_t id, bool answered);
/* notify() - @params as in request_send(). */
void notify(struct upstream *u, const char *method, const char *params);
/* upstream_send() - One without an answer; @method is NULL if it is an answer itself. */
void upstream_send(struct upstream *u, const char *text, size_t len, const char *method);

/* calls_dispatch() - Send the calls that wait, as far as the server is ready for them. */
void calls_dispatch(struct upstream *u);
/* calls_send() - One of them; it may fail here, and be gone. */
void calls_send(struct request *r);

/* answers.c */
void answers_message(struct upstream *u, char *text, size_t len);
void answers_failure(struct upstream *u, uint64_t id, const struct wire_failure *f);

/* upstream_life.c: answers to the requests of a handshake */
void handshake_result(struct request *r, const char *text, size_t len);
void handshake_error(struct request *r, int code, const char *message, const json_t *data);
void handshake_failure(struct request *r, const struct wire_failure *f);
void handshake_silence(struct request *r);

/* server_tools.c */
void tools_want(struct upstream *u);
void tools_page(struct request *r, const char *text, size_t len);
/* tools_failed() - End the requests that wait for the list. */
void tools_failed(struct upstream *u, const char *code, const char *why);
void tools_changed(struct upstream *u);
void tools_free(struct upstream *u);
bool tools_fresh(const struct upstream *u);
/* tools_find() - The tool, or NULL. */
const json_t *tools_find(const struct upstream *u, const char *name);
/* tools_check_headers() - Whether the headers that a tool asks for are allowed. Pure. */
bool tools_check_headers(const json_t *tool);
/* tools_headers() - The headers for a call, for mem_free_list(); NULL without memory. */
char **tools_headers(const json_t *tool, const char *arguments, size_t len);

#endif
