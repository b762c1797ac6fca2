/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jupyter.h - Sandboxes as a Jupyter Kernel Gateway shows them: who is what, and who owns whom.
 *
 * Every running sandbox of an owner is a kernel: its id is its name when that is a UUID, as it is
 * when the kernel was made here, and otherwise its own random id with dashes. So variables set over
 * REST, MCP and this wire are the same. What only this wire needs hangs on the sandbox as a struct
 * jkernel, from the first moment that somebody asks for it:
 *
 *     sandbox ── jkernel ─┬─ jline...     connected WebSockets (line.c)
 *                         ├─ jrequest...  messages of clients, answered one after another
 * (request.c) ├─ held...      what was said while a client was away (held.c) ├─ late         what
 * is printed while nothing is executed (late.c) └─ history
 *
 * Of requests the first is being answered. One that came on the control channel is answered at
 * once. Around each there are `busy` and `idle`, and `idle` is the last word about it.
 */
#ifndef CAISSON_FRONT_JUPYTER_JUPYTER_H
#define CAISSON_FRONT_JUPYTER_JUPYTER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "front/cell/kernel_pipes.h"
#include "front/http/auth.h"
#include "front/output/capture.h"
#include "front/sandbox/sandbox.h"
#include "jupyter/frame.h"
#include "net/loop.h"

struct execution;
struct front;
struct http_exchange;
struct json;
struct language;
struct ws;

#define JUPYTER_ID_MAX 37       /* a UUID and its NUL */
#define JUPYTER_SESSION_MAX 128 /* of a client, in the query */
#define JUPYTER_MESSAGE_MAX (40u << 20)
#define JUPYTER_REQUESTS_MAX 256u
#define JUPYTER_REQUESTS_BYTES (32u << 20)
#define JUPYTER_LINES_MAX 32u
#define JUPYTER_LABEL "kernelspec" /* of a sandbox that was made here */

enum jchannel { JCHANNEL_SHELL, JCHANNEL_CONTROL, JCHANNEL_STDIN, JCHANNEL_IOPUB };

struct jkernel;

/* One WebSocket. While it is there the sandbox is in use. */
struct jline {
	struct jkernel *kernel; /* NULL: it is over, the socket is closing */
	struct jline *prev, *next;
	struct ws *ws;
	enum frame_kind kind;
	struct entry entry;
	struct timer slow; /* it does not read */
	char session[JUPYTER_SESSION_MAX];
};

/* One message of a client. */
struct jrequest {
	struct jkernel *kernel;
	struct jrequest *next;
	struct jline *line;    /* whose; NULL: gone */
	enum jchannel channel; /* of the answer */
	bool queued;           /* it has its turn; others are answered at once */
	bool begun;            /* its turn has come */
	char session[JUPYTER_SESSION_MAX];
	char *header; /* JSON text: parent of everything that is said about it */
	size_t size;
	const char *type; /* into the message */
	json_t *message_header, *content;
	struct execution *running;
	int64_t question; /* of the code that runs: the input_request that was passed on */
	bool asked;
	/* execute_request: what is known when the execution is over, for its reply */
	bool silent, failed;
	bool reset; /* its interpreter is gone, and the variables with it */
	unsigned int count;
	struct buf error; /* JSON: the content of `error` */
};

/* What was said while a client was away, for its session. */
struct jheld;

/* What is printed between executions: of threads and processes that code has left behind. */
struct jlate {
	char *parent;          /* JSON text: the header of the last execute_request; NULL: none */
	struct capture cut[2]; /* characters that a chunk has cut, of each stream */
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
	struct jline *lines;
	size_t n_lines;
	struct jrequest *first, **last;
	size_t n_requests, bytes;
	struct jheld *held; /* who left last is first */
	size_t held_bytes;
	struct jlate late;
	struct jhistory history;
	unsigned int count;
	uint64_t active_ms; /* since 1970 */
	void (*restarted)(struct jkernel *k, void *arg);
	void *restarted_arg;
	const struct jrequest *cut; /* was being answered when the restart came; NULL: none, or it
				       has ended */
	struct deferred tell; /* it is over: not before the sandbox has put away what it ran */
	bool restarting; /* until the old interpreter and what it ran are over: nothing begins */
	bool old_over;   /* the interpreter is */
	bool ended;      /* the sandbox, which was not made here, goes on without it */
};

/* ---- kernel.c ------------------------------------------------------------------------------ */

/* jkernel_of() - Made when it is not there; NULL without memory. */
struct jkernel *jkernel_of(struct sandbox *s);
/* jkernel_is() - Whether this one of the owner's is a kernel: it runs, and has not been ended as
 * one. */
bool jkernel_is(const struct sandbox *s, const char *owner);
/* jkernel_is_ours() - Made on this wire, and ends with its kernel. */
bool jkernel_is_ours(const struct sandbox *s);
/* jkernel_end() - As its owner asks: the sandbox with it if it was made here, and otherwise its
 * interpreter alone. */
void jkernel_end(struct sandbox *s, const char *why);
/* jkernel_find() - The owner's running sandbox of this kernel id; or NULL. */
struct sandbox *jkernel_find(struct front *f, const char *owner, const char *id);
void jkernel_id(const struct sandbox *s, char id[JUPYTER_ID_MAX]);
const struct language *jkernel_language(const struct sandbox *s);
const char *jkernel_spec_name(const struct language *l);
/* jkernel_json() - The model that clients know. */
void jkernel_json(const struct sandbox *s, struct json *j);
/*
 * jkernel_restart() - Its interpreter ends, and what was asked before with it; what is asked from
 * now on waits for the next one. @fn is called when that is so, perhaps at once; with NULL when the
 * sandbox ends first.
 */
void jkernel_restart(struct jkernel *k, void (*fn)(struct jkernel *k, void *arg), void *arg);

/* jkernel_cut_ended() - What a restart cut short has been answered. */
void jkernel_cut_ended(struct jkernel *k);

/* For the sandbox: an interpreter of it ended; its cell did; it ends itself. They do nothing when
 * this wire was never used. */
void jupyter_kernel_ended(struct sandbox *s, const struct language *l);
void jupyter_cell_gone(struct sandbox *s);
void jupyter_sandbox_ended(struct sandbox *s);

/* ---- say.c --------------------------------------------------------------------------------- */

/* jkernel_publish() - On iopub, to everybody. @parent NULL: about nothing that was asked. */
void jkernel_publish(struct jkernel *k, const struct jrequest *parent, const char *type,
		     const struct buf *content);
/* jline_publish() - On iopub, to one alone, and about nothing that was asked. */
void jline_publish(struct jline *l, const char *type, const struct buf *content);
void jkernel_status(struct jkernel *k, const struct jrequest *parent, const char *state);
/* jrequest_say() - To whoever asked, wherever they are now. */
void jrequest_say(const struct jrequest *r, enum jchannel channel, const char *type,
		  const struct buf *content);
/* jkernel_congested() - Somebody has not read what was said. */
bool jkernel_congested(const struct jkernel *k);

/* ---- held.c -------------------------------------------------------------------------------- */

/* jheld_begin() - Nobody of this session is connected any more. "": there is no way to know it
 * again. */
void jheld_begin(struct jkernel *k, const char *session);
/* jheld_add() - For who is away; @session NULL: for all of them. */
void jheld_add(struct jkernel *k, const char *session, const struct frame_message *m);
/* jheld_give() - It is back: everything to @fn, in order, and forget it. The number of those that
 * had no room. */
size_t jheld_give(struct jkernel *k, const char *session,
		  void (*fn)(const struct frame_message *m, void *arg), void *arg);
void jheld_free(struct jkernel *k);

/* ---- late.c -------------------------------------------------------------------------------- */

/* jlate_parent() - What is printed after this request is about it. */
void jlate_parent(struct jkernel *k, const char *header);
void jlate_free(struct jkernel *k);
/* For the sandbox: something was printed, and no execution runs. */
void jupyter_late_output(struct sandbox *s, const struct language *l, enum kernel_stream stream,
			 const char *data, size_t len);

/* ---- request.c ----------------------------------------------------------------------------- */

/* jrequest_take() - A message of a client. NULL, or why the line must close (static). */
const char *jrequest_take(struct jline *l, bool text, const char *data, size_t len);
/* jrequest_end() - It was answered: idle, and the next. Frees it. */
void jrequest_end(struct jrequest *r);
/* jrequest_next() - The first one's turn, if it may begin. */
void jrequest_next(struct jkernel *k);
/* jrequest_abort_rest() - Those whose turn has not come, if they would execute: they will not. */
void jrequest_abort_rest(struct jkernel *k);
void jrequest_free_all(struct jkernel *k);
void jrequest_forget_line(struct jkernel *k, const struct jline *l);

/* ---- run.c, query.c, info.c ---------------------------------------------------------------- */

void jrun_execute(struct jrequest *r);
/* jrun_note() - An execution for an execute_request is over: what its reply will say of the
 * interpreter. */
void jrun_note(struct jrequest *r, const struct execution *x);
void jrun_reply(struct jrequest *r, const struct buf *expressions);
void jrun_answer(struct jkernel *k, const json_t *content);
void jrun_resume(struct jkernel *k);

void jquery_complete(struct jrequest *r);
void jquery_inspect(struct jrequest *r);
void jquery_is_complete(struct jrequest *r);
/* jquery_expressions() - The reply to @r follows. */
void jquery_expressions(struct jrequest *r, json_t *expressions);

void jinfo_reply(struct jrequest *r);
void jinfo_specs(const struct front *f, struct json *j);
bool jinfo_spec(const struct front *f, const char *name, struct json *j);

/* ---- history.c ----------------------------------------------------------------------------- */

void jhistory_add(struct jhistory *h, unsigned int number, const char *code);
void jhistory_reply(struct jrequest *r);
void jhistory_free(struct jhistory *h);

/* ---- line.c -------------------------------------------------------------------------------- */

/* jline_open() - From a handshake that is one. False without memory; then nothing was answered. */
bool jline_open(struct jkernel *k, struct http_exchange *x);
void jline_send(struct jline *l, const struct frame_message *m);
/* jline_end() - Its kernel is over: the socket closes with this. */
void jline_end(struct jline *l, int code, const char *why);

/* ---- birth.c ------------------------------------------------------------------------------- */

/* jbirth() - A kernel as @body (NULL: python3) asks for it; then @made, or the exchange is
 * answered. */
void jbirth(struct front *f, struct http_exchange *x, const json_t *body,
	    void (*made)(struct http_exchange *x, struct sandbox *s, json_t *arg), json_t *arg);

/* jupyter_body() - The request's JSON object; an empty body is an empty one. NULL: answered. */
json_t *jupyter_body(struct http_exchange *x);
/* jupyter_stamp() - As the gateway's clients parse it: with six digits of a second. */
void jupyter_stamp(struct json *j, const char *key, uint64_t ms);
void jupyter_uuid(char id[JUPYTER_ID_MAX]);

/* Kernels and the paths they are open under, in the order in which they were made. */
struct jsession;
void jsessions_free(struct front *f);

#endif
