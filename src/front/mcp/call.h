/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call.h - One request of the Model Context Protocol, from its message to its answer, on any wire.
 *
 * Life: mcp_call_new() -> mcp_call_run() -> a method's handler -> answered exactly once
 * (mcp_answer_end(), mcp_fail()) or cancelled (mcp_call_cancel()). Either ends and frees
 * it: do not touch it afterwards. A handler that cannot answer at once sets work and cancel; cancel
 * lets go of the work, and neither answers nor frees.
 *
 * Where messages go is the line's business (post.c, channel.c): a handler sees none of it.
 * The differences between the two eras of the protocol are handled here; most handlers need not
 * know of them.
 */
#ifndef CAISSON_FRONT_MCP_CALL_H
#define CAISSON_FRONT_MCP_CALL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/json.h"
#include "front/http/token.h" /* OWNER_MAX */
#include "mcp/message.h"
#include "net/loop.h"

struct mcp;
struct mcp_call;
struct mcp_session;

#define MCP_ANSWER_MAX (128u << 20)

/* The transport of a call. */
struct mcp_line {
	/* A message about the call, before its end. */
	void (*send)(struct mcp_call *c, const struct buf *json);
	/* The last one. @json NULL: the call was cancelled and has no answer. @status: for HTTP. c
	 * is freed afterwards. */
	void (*finish)(struct mcp_call *c, int status, const struct buf *json);
	/* Whether to send no more for now; c->drained will be called. May be NULL. */
	bool (*congested)(const struct mcp_call *c);
	/* A header of the request, or NULL: it has none of this name. NULL: a wire without headers.
	 */
	const char *(*header)(const struct mcp_call *c, const char *lower_name);
	/* Let the connection go: the client comes back for the rest. NULL: it could not. */
	void (*hang_up)(struct mcp_call *c);
};

struct mcp_call {
	struct mcp *mcp;
	struct mcp_call *prev, *next; /* all of the daemon */
	const struct mcp_line *line;
	void *at;                    /* the line's own */
	struct mcp_session *session; /* of a legacy client; NULL for a modern one */
	char owner[OWNER_MAX];
	enum mcp_era era;
	json_t *message;       /* all of it; owned */
	struct mcp_message m;  /* into it */
	uint64_t progress;     /* told so far */
	json_t *state;         /* of an earlier round (input_request.h), or NULL */
	struct timer patience; /* when it is over, the call becomes a task (task.h) */
	bool listens;          /* a subscription: its answer is the end of that */

	/* The handler's. */
	void *work;
	void (*cancel)(struct mcp_call *c);  /* NULL: it is over soon anyway */
	void (*drained)(struct mcp_call *c); /* may be NULL */
	uint64_t lines, told_ns;             /* of running code: written, and told last */
};

/* mcp_call_new() - @m: the request @message, of which the call keeps a reference. NULL without
 * memory. */
struct mcp_call *mcp_call_new(struct mcp *mcp, const char *owner, struct mcp_session *session,
			      enum mcp_era era, json_t *message, const struct mcp_message *m,
			      const struct mcp_line *line, void *at);
/* mcp_call_run() - Find the method and call it. The call may be over when this returns. */
void mcp_call_run(struct mcp_call *c);
/* mcp_call_cancel() - Nobody wants the answer any more. */
void mcp_call_cancel(struct mcp_call *c);
/*
 * mcp_call_move() - Answer with @json on the line that it has, and go on: what follows, the end
 * too, goes to
 * @line. For calls that outlive the request they came with.
 */
void mcp_call_move(struct mcp_call *c, const struct buf *json, const struct mcp_line *line,
		   void *at);
/* mcp_call_find() - The one with this id among the session's, or, without a session, among those of
 * @at. */
struct mcp_call *mcp_call_find(struct mcp *mcp, const struct mcp_session *session, const void *at,
			       const json_t *id);

/* mcp_capable() - Whether the client declared "elicitation", "extensions/io.x/y", ... */
bool mcp_capable(const struct mcp_call *c, const char *capability, const char *extension);

/* ---- answers ------------------------------------------------------------------------------- */

struct mcp_answer {
	struct buf buf;
	struct json j; /* inside the object `result` */
};

/* mcp_answer_begin() - Opens the result: write its members to a->j. */
void mcp_answer_begin(const struct mcp_call *c, struct mcp_answer *a);
/* mcp_answer_begin_as() - With another resultType than "complete", which only the modern wire has.
 */
void mcp_answer_begin_as(const struct mcp_call *c, struct mcp_answer *a, const char *result_type);
/* mcp_answer_cache() - How long it may be kept, and by whom; the modern wire wants to know for
 * lists. */
void mcp_answer_cache(const struct mcp_call *c, struct mcp_answer *a, uint64_t ttl_ms,
		      bool public_);
/* mcp_answer_end() - Send it. The call is over. */
void mcp_answer_end(struct mcp_call *c, struct mcp_answer *a);
/* mcp_answer_close() - Write what ends every result, and no more. 0, or a negative errno. */
int mcp_answer_close(const struct mcp_call *c, struct mcp_answer *a);

/* mcp_answer_text() - A whole response that was written before. The call is over. */
void mcp_answer_text(struct mcp_call *c, const struct buf *json);
/* mcp_answer_with() - The response of another call, as it is but for the id. The call is over. */
void mcp_answer_with(struct mcp_call *c, json_t *response);
/* mcp_answer_empty() - A result without members. The call is over. */
void mcp_answer_empty(struct mcp_call *c);

/* mcp_fail() - An error of the protocol; status 200 but where the wire says otherwise. The call is
 * over. @...: a format and its values. */
#define mcp_fail(c, code, ...) mcp_fail_data((c), 200, (code), NULL, __VA_ARGS__)
/* mcp_fail_data() - The same with a status and `data`, which is freed; NULL: none. */
void mcp_fail_data(struct mcp_call *c, int status, int code, json_t *data, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

/* mcp_fail_capability() - The client did not declare what this needs; @extension may be NULL. Over.
 */
void mcp_fail_capability(struct mcp_call *c, const char *capability, const char *extension);

/* mcp_error_json() - A whole error response into @out, which is empty: without @data, or @id, where
 * they do not fit. @id NULL: null. */
void mcp_error_json(struct buf *out, const json_t *id, int code, const json_t *data,
		    const char *message);

/* ---- on the way ---------------------------------------------------------------------------- */

/* mcp_notify() - @params: a whole JSON object. */
void mcp_notify(struct mcp_call *c, const char *method, const struct buf *params);
/* mcp_wants_progress() - Whether the client gave a token for it. */
bool mcp_wants_progress(const struct mcp_call *c);
/* mcp_progress() - One step further, with a text; @total 0: unknown. Nothing without a token. */
void mcp_progress(struct mcp_call *c, uint64_t progress, uint64_t total, const char *text,
		  size_t len);
/* mcp_log() - To a client that asked for messages of this level (0 debug to 7 emergency). */
void mcp_log(struct mcp_call *c, unsigned int level, const char *logger, const char *text);
/* mcp_log_level() - "info" to 1; -1: no such level. */
int mcp_log_level(const char *name);

/* ---- lists in pages ------------------------------------------------------------------------ */

/* A cursor holds how many entries came before; to a client it is opaque. */
#define MCP_PAGE_MAX 200u

struct mcp_page {
	size_t from, seen;
};

/* mcp_page_begin() - From params.cursor. False: it is invalid, and the call was answered. */
bool mcp_page_begin(struct mcp_call *c, struct mcp_page *ret);
/* mcp_page_takes() - Ask once for each entry of the whole list, in order: whether it is on this
 * page. */
bool mcp_page_takes(struct mcp_page *p);
/* mcp_page_end() - Member nextCursor, when there is more. */
void mcp_page_end(const struct mcp_page *p, struct json *j);

/* ---- methods ------------------------------------------------------------------------------- */

/* One for each row of the table in call.c. Each answers, now or later. */
typedef void mcp_method(struct mcp_call *c);
extern mcp_method mcp_method_initialize, mcp_method_discover, mcp_method_ping, mcp_method_set_level,
	mcp_method_tools_list, mcp_method_tools_call, mcp_method_resources_list,
	mcp_method_templates_list, mcp_method_resources_read, mcp_method_resources_subscribe,
	mcp_method_resources_unsubscribe, mcp_method_directory_read, mcp_method_skills_list,
	mcp_method_skills_get, mcp_method_prompts_list, mcp_method_prompts_get, mcp_method_complete,
	mcp_method_listen, mcp_method_tasks_get, mcp_method_tasks_update, mcp_method_tasks_cancel;

/* mcp_no_method() - The method does not exist, or nothing that it could be about. The call is over.
 */
void mcp_no_method(struct mcp_call *c);
/* mcp_notified() - A notification of a client. @session: NULL on the modern wire; @at: the line it
 * came on. */
void mcp_notified(struct mcp *mcp, struct mcp_session *session, const void *at,
		  const struct mcp_message *m);

#endif
