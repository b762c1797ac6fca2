/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tasks.c - Tasks: tasks/get, tasks/update, tasks/cancel, and the line that a call has as a task.
 *
 * working -> (input_required -> working ...) -> completed | failed | cancelled. A tool's own
 * failure is a result like any other, and completed; a task that ends with an error of the protocol
 * is failed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/list.h"
#include "front/mcp/call.h"
#include "front/mcp/mcp.h"
#include "front/mcp/subscribe.h"
#include "front/mcp/task.h"
#include "front/support/daemon.h"
#include "front/support/json_alloc.h"
#include "front/support/name.h"
#include "front/support/time_text.h"

#define TASKS_MAX 4096u
#define RUNNING_MAX 64u             /* of one owner */
#define ENDED_MAX 256u              /* of one owner; the oldest makes room */
#define TASKS_BYTES (128u << 20)    /* of all results that are kept */
#define KEPT_MS (30u * 60u * 1000u) /* after the longest time that code may run */
#define POLL_MS 1000u
#define PATIENCE_NS (5 * CLOCK_NS_PER_S)
#define SHOWN_MAX (256u << 20)

enum status { WORKING, ASKING, COMPLETED, FAILED, CANCELLED };

static const char *const status_names[] = { "working", "input_required", "completed", "failed",
					    "cancelled" };

struct mcp_task {
	struct mcp *mcp;
	struct mcp_task *prev, *next;
	char id[33];
	char owner[OWNER_MAX];
	enum status status;
	uint64_t created_ms, updated_ms, ttl_ms;
	struct timer end;
	struct mcp_call *call;     /* while it runs */
	json_t *result, *error;    /* what it ended with: one of them */
	size_t bytes;              /* of that */
	json_t *asked, *responses; /* questions without an answer; answers */
	void (*answered)(struct mcp_call *c, const json_t *responses);
};

/* ---- what is shown ------------------------------------------------------------------------- */

static void write_task(struct json *j, const struct mcp_task *t)
{
	json_member_str(j, "taskId", t->id);
	json_member_str(j, "status", status_names[t->status]);
	time_json(j, "createdAt", t->created_ms);
	time_json(j, "lastUpdatedAt", t->updated_ms);
	json_member_uint(j, "ttlMs", t->ttl_ms);
	json_member_uint(j, "pollIntervalMs", POLL_MS);
}

static void write_details(struct json *j, const struct mcp_task *t)
{
	write_task(j, t);
	if (t->status == ASKING)
		json_member_value(j, "inputRequests", t->asked);
	if (t->result)
		json_member_value(j, "result", t->result);
	if (t->error)
		json_member_value(j, "error", t->error);
}

static void changed(struct mcp_task *t, enum status status)
{
	_buf_ struct buf b = BUF_INIT(SHOWN_MAX);
	struct json j;
	json_t *shown;

	t->status = status;
	t->updated_ms = time_now_ms();
	json_init(&j, &b);
	json_object_begin(&j);
	write_details(&j, t);
	json_object_end(&j);
	shown = json_finish(&j) == 0 ? json_loadb(buf_str(&b), b.len, 0, NULL) : NULL;
	if (shown)
		mcp_task_told(t->mcp, t->owner, t->id, shown);
}

/* ---- life ---------------------------------------------------------------------------------- */

static void forget(struct mcp_task *t)
{
	struct mcp *m = t->mcp;

	timer_cancel(&t->end);
	LIST_DROP(m->tasks, t);
	m->n_tasks--;
	m->tasks_bytes -= t->bytes;
	json_decref(t->result);
	json_decref(t->error);
	json_decref(t->asked);
	json_decref(t->responses);
	free(t);
}

static void on_end(struct timer *timer)
{
	struct mcp_task *t = timer->arg;

	if (t->call)
		mcp_call_cancel(t->call);
	forget(t);
}

void mcp_tasks_end(struct mcp *mcp)
{
	while (mcp->tasks)
		on_end(&mcp->tasks->end);
}

struct mcp_task *mcp_task_find(struct mcp *mcp, const char *owner, const char *id)
{
	for (struct mcp_task *t = mcp->tasks; t; t = t->next)
		if (strcmp(t->id, id) == 0 && strcmp(t->owner, owner) == 0)
			return t;
	return NULL;
}

/* The owner's oldest task that has ended, or NULL; *running and *ended: how many of each there are.
 */
static struct mcp_task *census(struct mcp *mcp, const char *owner, size_t *running, size_t *ended)
{
	struct mcp_task *oldest = NULL;

	*running = *ended = 0;
	for (struct mcp_task *t = mcp->tasks; t; t = t->next) {
		if (strcmp(t->owner, owner) != 0)
			continue;
		*(t->call ? running : ended) += 1;
		if (!t->call)
			oldest = t;
	}
	return oldest;
}

static bool may_add(struct mcp *mcp, const char *owner)
{
	size_t running, ended;
	struct mcp_task *oldest = census(mcp, owner, &running, &ended);

	if (ended >= ENDED_MAX)
		forget(oldest);
	return mcp->n_tasks < TASKS_MAX && running < RUNNING_MAX;
}

static struct mcp_task *add(struct mcp_call *c)
{
	struct mcp_task *t = calloc(1, sizeof(*t));
	struct mcp *m = c->mcp;

	if (!t)
		return NULL;
	t->mcp = c->mcp;
	t->call = c;
	(void)snprintf(t->owner, sizeof(t->owner), "%s", c->owner);
	random_id(t->id);
	t->created_ms = t->updated_ms = time_now_ms();
	t->ttl_ms = c->mcp->daemon->config.max_timeout_ms + KEPT_MS;
	t->end.fn = on_end;
	t->end.arg = t;
	timer_after(c->mcp->loop, &t->end, t->ttl_ms * CLOCK_NS_PER_MS);
	LIST_PUSH(m->tasks, t);
	m->n_tasks++;
	return t;
}

/* ---- the line of a call that is a task ----------------------------------------------------- */

static void line_send(struct mcp_call *c, const struct buf *json)
{
	(void)c; /* there is no stream: a client asks with tasks/get */
	(void)json;
}

/* Whether there is room for so many more bytes, the owner's older results given up where needed. */
static bool make_room(struct mcp_task *t, size_t bytes)
{
	size_t running, ended;
	struct mcp_task *oldest;

	while (t->mcp->tasks_bytes + bytes > TASKS_BYTES) {
		oldest = census(t->mcp, t->owner, &running, &ended);
		if (!oldest)
			return false;
		forget(oldest);
	}
	return true;
}

static void keep(struct mcp_task *t, const struct buf *json)
{
	json_t *message = NULL;

	if (make_room(t, json->len))
		message = json_loadb(buf_str(json), json->len, 0, NULL);
	t->result = json_incref(json_object_get(message, "result"));
	t->error = json_incref(json_object_get(message, "error"));
	if (message) {
		t->bytes = json->len;
		t->mcp->tasks_bytes += t->bytes;
	} else {
		t->error = json_pack("{s:i,s:s}", "code", MCP_INTERNAL, "message",
				     "there are too many results of tasks to keep this one, too");
	}
	json_decref(message);
}

static void line_finish(struct mcp_call *c, int status, const struct buf *json)
{
	struct mcp_task *t = c->at;

	(void)status;
	if (json)
		keep(t, json); /* while it counts as running, so that it does not make room for
				  itself */
	t->call = NULL;
	changed(t, !json ? CANCELLED : t->result ? COMPLETED : FAILED);
}

static const struct mcp_line task_line = { line_send, line_finish, NULL, NULL };

bool mcp_is_task(const struct mcp_call *c)
{
	return c->line == &task_line;
}

bool mcp_task_asks(const struct mcp_call *c)
{
	const struct mcp_task *t = c->at;

	return t->status == ASKING;
}

bool mcp_task_begin(struct mcp_call *c)
{
	struct mcp_task *t;
	struct mcp_answer a;

	if (c->era != MCP_MODERN || !mcp_capable(c, "extensions", MCP_TASKS) ||
	    !may_add(c->mcp, c->owner) || !(t = add(c)))
		return false;
	mcp_answer_begin_as(c, &a, "task");
	write_task(&a.j, t);
	if (mcp_answer_close(c, &a) < 0) {
		forget(t);
		buf_free(&a.buf);
		return false;
	}
	mcp_call_move(c, &a.buf, &task_line, t);
	buf_free(&a.buf);
	return true;
}

static void on_patience(struct timer *timer)
{
	(void)mcp_task_begin(timer->arg);
}

void mcp_task_later(struct mcp_call *c)
{
	if (c->era != MCP_MODERN || !mcp_capable(c, "extensions", MCP_TASKS))
		return;
	c->patience.fn = on_patience;
	c->patience.arg = c;
	timer_after(c->mcp->loop, &c->patience, PATIENCE_NS);
}

void mcp_task_ask(struct mcp_call *c, json_t *requests,
		  void (*answered)(struct mcp_call *c, const json_t *responses))
{
	struct mcp_task *t = c->at;

	t->asked = requests;
	t->responses = json_object();
	t->answered = answered;
	changed(t, ASKING);
}

/* ---- methods ------------------------------------------------------------------------------- */

/* The task that the request is about; NULL: answered. */
static struct mcp_task *own_task(struct mcp_call *c)
{
	const char *id = json_string_value(json_object_get(c->m.params, "taskId"));
	struct mcp_task *t = id ? mcp_task_find(c->mcp, c->owner, id) : NULL;

	if (!mcp_capable(c, "extensions", MCP_TASKS)) {
		mcp_fail_capability(c, "extensions", MCP_TASKS);
		return NULL;
	}
	if (!t)
		mcp_fail(c, MCP_INVALID_PARAMS,
			 id ? "params.taskId: unknown or expired task" :
			      "params.taskId must be a string");
	return t;
}

void mcp_method_tasks_get(struct mcp_call *c)
{
	const struct mcp_task *t = own_task(c);
	struct mcp_answer a;

	if (!t)
		return;
	mcp_answer_begin(c, &a);
	write_details(&a.j, t);
	mcp_answer_end(c, &a);
}

static void take_answers(struct mcp_task *t, json_t *answers)
{
	void (*answered)(struct mcp_call * c, const json_t *responses) = t->answered;
	json_t *one, *all;
	const char *key;

	json_object_foreach(answers, key, one)
	{
		if (!json_is_object(one) || !json_object_get(t->asked, key))
			continue;
		(void)json_object_set(t->responses, key, one);
		(void)json_object_del(t->asked, key);
	}
	if (json_object_size(t->asked) > 0)
		return;
	json_decref(t->asked);
	all = t->responses;
	t->asked = t->responses = NULL;
	changed(t, WORKING);
	answered(t->call, all);
	json_decref(all);
}

void mcp_method_tasks_update(struct mcp_call *c)
{
	json_t *answers = json_object_get(c->m.params, "inputResponses");
	struct mcp_task *t = own_task(c);

	if (!t)
		return;
	if (!json_is_object(answers)) {
		mcp_fail(c, MCP_INVALID_PARAMS, "params.inputResponses must be an object");
		return;
	}
	if (t->status == ASKING)
		take_answers(t, answers);
	mcp_answer_empty(c);
}

void mcp_method_tasks_cancel(struct mcp_call *c)
{
	struct mcp_task *t = own_task(c);

	if (!t)
		return;
	if (t->call)
		mcp_call_cancel(t->call);
	mcp_answer_empty(c);
}
