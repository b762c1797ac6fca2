/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jupyter.h - Sandboxes as the kernels of a Jupyter Kernel Gateway.
 *
 * Every running sandbox of an owner is a kernel. Its kernel id is its name if that is a UUID, as it
 * is when the kernel was made here, and otherwise its own random id with dashes. So REST, MCP and
 * Jupyter share the variables of a sandbox. The state that only Jupyter needs hangs on the sandbox
 * as a struct jkernel, from the first request that needs it:
 *
 *     sandbox -- jkernel --+-- jclient...   connected WebSockets (client.c)
 *                          +-- jrequest...  requests of clients, answered in turn (jrequest.c)
 *                          +-- jbacklog...  messages for clients that are away (messages.c)
 *                          +-- background   output while no execution runs (background_output.c)
 *                          `-- history      code that was executed (history.c)
 *
 * The first request of the list is being answered. A request on the control channel is answered at
 * once. A kernel publishes `busy` before and `idle` after each; `idle` is the last message about
 * it.
 */
#ifndef CAISSON_FRONT_JUPYTER_JUPYTER_H
#define CAISSON_FRONT_JUPYTER_JUPYTER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "front/cell/kernel_pipes.h"
#include "front/output/output_text.h"
#include "front/sandbox/sandbox.h"
#include "jupyter/frame.h"
#include "net/loop.h"

struct execution;
struct http_exchange;
struct image_use;
struct jsession;
struct json;
struct language;
struct sandboxes;
struct ws;

#define JUPYTER_ID_MAX 37       /* a UUID and its NUL */
#define JUPYTER_SESSION_MAX 128 /* of a client, in the query */
#define JUPYTER_MESSAGE_MAX (40u << 20)
#define JUPYTER_REQUESTS_MAX 256u
#define JUPYTER_REQUESTS_BYTES (32u << 20)
#define JUPYTER_CLIENTS_MAX 32u
#define JUPYTER_LABEL "kernelspec" /* of a sandbox that was made here */

enum jchannel { JCHANNEL_SHELL, JCHANNEL_CONTROL, JCHANNEL_STDIN, JCHANNEL_IOPUB };

struct jkernel;

/* One WebSocket. While it is connected the sandbox is in use. */
struct jclient {
	struct jkernel *kernel; /* NULL: it has left, and the socket is closing */
	struct jclient *prev, *next;
	struct ws *ws;
	enum frame_kind kind;
	struct entry entry;
	struct timer slow; /* runs while the client does not read */
	char session[JUPYTER_SESSION_MAX];
};

/* One request of a client. */
struct jrequest {
	struct jkernel *kernel;
	struct jrequest *next;
	struct jclient *client; /* NULL: it has left */
	enum jchannel channel;  /* of the answer */
	bool queued;            /* it waits for its turn; others are answered at once */
	bool begun;             /* its turn has come */
	char session[JUPYTER_SESSION_MAX];
	char *header; /* JSON text: the parent of all messages about it */
	size_t size;
	const char *type; /* into the message */
	json_t *message_header, *content;
	struct execution *running;
	int64_t question; /* id of the input_request of the running code that was passed on */
	bool asked;
	/* execute_request: collected for the reply */
	bool silent, failed;
	bool reset; /* the interpreter is gone, and the variables with it */
	bool lost;  /* the cell is gone, and the files with it */
	unsigned int count;
	struct buf error; /* JSON: the content of `error` */
};

/* Messages for one session whose client is away. */
struct jbacklog;

/* Output between executions: of threads and processes that code has left behind. */
struct jbackground {
	char *parent;              /* JSON text: the header of the last execute_request; or NULL */
	struct text_joiner cut[2]; /* of each stream */
	uint64_t room, filled_ns, dropped;
};

struct jhistory {
	char **code;
	unsigned int *number;
	size_t n, at, bytes; /* a ring */
};

struct jkernel {
	struct sandbox *sandbox;
	const struct language *language;
	struct jclient *clients;
	size_t n_clients;
	struct jrequest *first, **last;
	size_t n_requests, bytes;
	struct jbacklog *backlogs; /* the session that left last is first */
	size_t backlog_bytes;
	struct jbackground background;
	struct jhistory history;
	unsigned int count;
	uint64_t active_ms; /* since 1970 */
	void (*restarted)(struct jkernel *k, void *arg);
	void *restarted_arg;
	const struct jrequest *cut; /* was running when the restart came; NULL: it has ended */
	struct deferred report;     /* the restart is over; runs after the sandbox has cleaned up */
	bool restarting;            /* no request begins until the old interpreter is over */
	bool old_over;              /* the old interpreter is over */
	bool ended;                 /* a sandbox that was not made here goes on without it */
};

/* ---- jkernel.c ----------------------------------------------------------------------------- */

/* jkernel_of() - Made if it is not there; NULL without memory. */
struct jkernel *jkernel_of(struct sandbox *s);
/* jkernel_is() - Whether this sandbox of the owner runs and was not ended as a kernel. */
bool jkernel_is(const struct sandbox *s, const char *owner);
/* jkernel_is_made_here() - Over Jupyter: the sandbox ends with its kernel. */
bool jkernel_is_made_here(const struct sandbox *s);
/* jkernel_end() - For the owner: end the sandbox if it was made here, otherwise the interpreter. */
void jkernel_end(struct sandbox *s, const char *why);
/* jkernel_find() - The owner's running sandbox with this kernel id; or NULL. */
struct sandbox *jkernel_find(struct sandboxes *sandboxes, const char *owner, const char *id);
void jkernel_id(const struct sandbox *s, char id[JUPYTER_ID_MAX]);
const struct language *jkernel_language(const struct sandbox *s);
const char *jkernel_spec_name(const struct language *l);
/* jkernel_json() - The model of a kernel in Jupyter's API. */
void jkernel_json(const struct sandbox *s, struct json *j);
/*
 * jkernel_restart() - End the interpreter, and abort the requests that have come so far. Requests
 * that come from now on wait for the next interpreter. @fn is called when the restart is over,
 * perhaps at once; with NULL if the sandbox ends first.
 */
void jkernel_restart(struct jkernel *k, void (*fn)(struct jkernel *k, void *arg), void *arg);
/* jkernel_cut_ended() - The request that a restart cut short has been answered. */
void jkernel_cut_ended(struct jkernel *k);

/* Hooks of the sandbox: an interpreter ended, the cell ended, the sandbox ends. They do nothing if
 * no Jupyter client ever used the sandbox. */
void jupyter_kernel_ended(struct sandbox *s, const struct language *l);
void jupyter_cell_gone(struct sandbox *s);
void jupyter_sandbox_ended(struct sandbox *s);

/* jupyter_stamp() - A time as the gateway's clients parse it: with six digits of a second. */
void jupyter_stamp(struct json *j, const char *key, uint64_t ms);
void jupyter_uuid(char id[JUPYTER_ID_MAX]);

/* ---- messages.c ---------------------------------------------------------------------------- */

/* jkernel_publish() - On iopub, to all clients. @parent NULL: about no request. */
void jkernel_publish(struct jkernel *k, const struct jrequest *parent, const char *type,
		     const struct buf *content);
void jkernel_status(struct jkernel *k, const struct jrequest *parent, const char *state);
/* jrequest_send() - To the client of the request, also if it has connected anew or is away. */
void jrequest_send(const struct jrequest *r, enum jchannel channel, const char *type,
		   const struct buf *content);
/* jkernel_congested() - A client has not read its messages. */
bool jkernel_congested(const struct jkernel *k);

/* jbacklog_begin() - No client of this session is left. A client without a session ("") cannot come
 * back, and gets no backlog. */
void jbacklog_begin(struct jkernel *k, const char *session);
/* jbacklog_send() - A client is back: send the backlog of its session, and drop it. */
void jbacklog_send(struct jclient *c);
void jbacklog_free(struct jkernel *k);

/* ---- background_output.c ------------------------------------------------------------------- */

/* jbackground_parent() - Output after this request is about it. */
void jbackground_parent(struct jkernel *k, const char *header);
void jbackground_free(struct jkernel *k);
/* Hook of the sandbox: output while no execution runs. */
void jupyter_background_output(struct sandbox *s, const struct language *l,
			       enum kernel_stream stream, const char *data, size_t len);

/* ---- jrequest.c ---------------------------------------------------------------------------- */

/* jrequest_take() - A message of a client. NULL, or why the connection must close (static). */
const char *jrequest_take(struct jclient *c, bool text, const char *data, size_t len);
/* jrequest_reply() - The answer, on the channel of the request, and its end. */
void jrequest_reply(struct jrequest *r, const char *type, const struct buf *content);
/* jrequest_end() - It was answered: publish `idle`, and begin the next. Frees it. */
void jrequest_end(struct jrequest *r);
/* jrequest_next() - Begin the first request, if it may begin. */
void jrequest_next(struct jkernel *k);
/* jrequest_abort_rest() - Abort every execute_request that has not begun. */
void jrequest_abort_rest(struct jkernel *k);
void jrequest_free_all(struct jkernel *k);
void jrequest_forget_client(struct jkernel *k, const struct jclient *c);

/* ---- run.c, query.c, info.c ---------------------------------------------------------------- */

void jrun_execute(struct jrequest *r);
/* jrun_note() - An execution for an execute_request is over: note the state of the interpreter for
 * the reply. */
void jrun_note(struct jrequest *r, const struct execution *x);
void jrun_reply(struct jrequest *r, const struct buf *expressions);
void jrun_answer(struct jkernel *k, const json_t *content);
void jrun_resume(struct jkernel *k);

/* jquery_ask() - complete_request, inspect_request, is_complete_request. */
void jquery_ask(struct jrequest *r);
/* jquery_expressions() - The reply to @r follows. */
void jquery_expressions(struct jrequest *r, json_t *expressions);

void jinfo_reply(struct jrequest *r);
/* jinfo_find() - The language of a kernelspec, if the image has it; or NULL. @name: may be NULL. */
const struct language *jinfo_find(const struct image_use *g, const char *name);
void jinfo_spec(const struct language *l, struct json *j);
void jinfo_specs(const struct image_use *g, struct json *j);

/* ---- history.c ----------------------------------------------------------------------------- */

void jhistory_add(struct jhistory *h, unsigned int number, const char *code);
void jhistory_reply(struct jrequest *r);
void jhistory_free(struct jhistory *h);

/* ---- client.c ------------------------------------------------------------------------------ */

/* jclient_open() - From a WebSocket handshake. False without memory; then it is not answered. */
bool jclient_open(struct jkernel *k, struct http_exchange *x);
void jclient_send(struct jclient *c, const struct frame_message *m);
/* jclient_end() - Its kernel is over: the socket closes with this code and reason. */
void jclient_end(struct jclient *c, int code, const char *why);

/* ---- create_kernel.c ----------------------------------------------------------------------- */

/* As in wait_for_cell() (api/find_sandbox.h). */
typedef void (*jkernel_made)(struct http_exchange *x, struct sandbox *s, bool fresh, json_t *arg);

/* jkernel_create() - A kernel as @body asks for it (NULL: python3); then @made answers. */
void jkernel_create(struct sandboxes *sandboxes, struct http_exchange *x, const json_t *body,
		    jkernel_made made, json_t *arg);
/* jupyter_body() - The request's JSON object; an empty body is an empty one. NULL: answered. */
json_t *jupyter_body(struct http_exchange *x);

/* ---- handle_notebooks.c -------------------------------------------------------------------- */

/* Notebooks and their kernels. */
struct notebooks {
	struct sandboxes *sandboxes;
	struct jsession *sessions;
};

void jsessions_free(struct notebooks *notebooks);

#endif
