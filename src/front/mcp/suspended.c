/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suspended.c - The line of a call that waits for its client to send the request again.
 *
 * A suspended call keeps running; its new line drops notifications and keeps the result. The
 * repeated request is a call of its own, the waiter, which takes the result or the next questions.
 */
#include "front/mcp/suspended.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/list.h"
#include "front/mcp/call.h"
#include "front/mcp/input_request.h"
#include "front/mcp/mcp.h"
#include "front/mcp/task.h"
#include "front/support/json_alloc.h"
#include "front/support/name.h"

#define SUSPENDED_MAX 512u
#define SUSPENDED_OWNER_MAX 32u
#define SUSPENDED_BYTES (64u << 20)    /* of all results that are kept */
#define KEPT_NS (300 * CLOCK_NS_PER_S) /* a result, for a client that may come back */
#define QUESTIONS_MAX (4u << 20)

struct mcp_suspended {
	struct mcp *mcp;
	struct mcp_suspended *prev, *next;
	const struct mcp_question_ops *ops;
	char id[33];
	char owner[OWNER_MAX];
	struct mcp_call *call;   /* the suspended one, while it runs */
	struct mcp_call *waiter; /* the one that came back, or NULL */
	json_t *response;        /* what it ended with */
	size_t bytes;            /* of that */
	struct timer end;
};

static void forget(struct mcp_suspended *p)
{
	timer_cancel(&p->end);
	LIST_DROP(p->mcp->suspended, p);
	p->mcp->n_suspended--;
	p->mcp->suspended_bytes -= p->bytes;
	json_decref(p->response);
	free(p);
}

static void on_end(struct timer *t)
{
	forget(t->arg);
}

void mcp_suspended_end(struct mcp *mcp)
{
	while (mcp->suspended)
		forget(mcp->suspended);
}

static struct mcp_call *take_waiter(struct mcp_suspended *p)
{
	struct mcp_call *c = p->waiter;

	p->waiter = NULL;
	if (c) {
		c->work = NULL;
		c->cancel = NULL;
	}
	return c;
}

/* ---- the line of the suspended call -------------------------------------------------------- */

static void line_send(struct mcp_call *c, const struct buf *json)
{
	(void)c; /* notifications have the progress token of a request that was answered */
	(void)json;
}

static void line_finish(struct mcp_call *c, int status, const struct buf *json)
{
	struct mcp_suspended *p = c->at;
	struct mcp_call *waiter = take_waiter(p);

	(void)status;
	p->call = NULL;
	if (json && p->mcp->suspended_bytes + json->len <= SUSPENDED_BYTES)
		p->response = json_alloc_load(buf_str(json), json->len, 0, NULL);
	if (waiter && p->response)
		mcp_answer_with(waiter, p->response);
	else if (waiter)
		mcp_fail(waiter, MCP_INTERNAL,
			 json ? "the result is too large to be kept" : "the call was cancelled");
	if (waiter || !json) {
		forget(p);
		return;
	}
	p->bytes = p->response ? json->len : 0;
	p->mcp->suspended_bytes += p->bytes;
	timer_after(p->mcp->loop, &p->end, KEPT_NS);
}

static const struct mcp_line suspended_line = { .send = line_send, .finish = line_finish };

/* ---- asking -------------------------------------------------------------------------------- */

static json_t *state_of(const struct mcp_suspended *p)
{
	return json_pack("{s:s}", "call", p->id);
}

static void task_answered(struct mcp_call *c, const json_t *responses)
{
	struct mcp_suspended *p = c->work;
	json_t *more;

	p->ops->answered(p->call, responses);
	if (p->waiter != c)
		return;
	more = p->ops->questions(p->call);
	if (json_object_size(more) > 0)
		mcp_task_ask(c, more, task_answered);
	else
		json_decref(more);
}

/* The waiter asks: as a task it stays, otherwise the questions are its answer. */
static void ask_waiter(struct mcp_suspended *p)
{
	struct mcp_call *c = p->waiter;

	if (mcp_is_task(c)) {
		if (!mcp_task_asks(c))
			mcp_task_ask(c, p->ops->questions(p->call), task_answered);
		return;
	}
	(void)take_waiter(p);
	mcp_inputs_ask(c, p->ops->questions(p->call), state_of(p));
}

static bool may_suspend(const struct mcp_call *c)
{
	size_t own = 0;

	for (const struct mcp_suspended *p = c->mcp->suspended; p; p = p->next)
		own += strcmp(p->owner, c->owner) == 0;
	return c->era == MCP_MODERN && mcp_capable(c, "elicitation", NULL) &&
	       c->mcp->n_suspended < SUSPENDED_MAX && own < SUSPENDED_OWNER_MAX;
}

static struct mcp_suspended *add(struct mcp_call *c, const struct mcp_question_ops *ops)
{
	struct mcp_suspended *p = calloc(1, sizeof(*p));
	struct mcp *m = c->mcp;

	if (!p)
		return NULL;
	p->mcp = c->mcp;
	p->ops = ops;
	p->call = c;
	p->end = (struct timer){ .fn = on_end, .arg = p };
	random_id(p->id);
	(void)snprintf(p->owner, sizeof(p->owner), "%s", c->owner);
	LIST_PUSH(m->suspended, p);
	m->n_suspended++;
	return p;
}

bool mcp_suspend(struct mcp_call *c, const struct mcp_question_ops *ops)
{
	_buf_ struct buf b = BUF_INIT(QUESTIONS_MAX);
	struct mcp_suspended *p;

	if (c->line == &suspended_line) {
		p = c->at;
		if (p->waiter)
			ask_waiter(p);
		return true;
	}
	if (!may_suspend(c) || !(p = add(c, ops)))
		return false;
	if (!mcp_inputs_json(c, ops->questions(c), state_of(p), &b)) {
		forget(p);
		return false;
	}
	timer_cancel(&c->patience);
	mcp_call_move(c, &b, &suspended_line, p);
	return true;
}

/* ---- coming back --------------------------------------------------------------------------- */

static struct mcp_suspended *find(struct mcp_call *c, const char *id)
{
	struct mcp_suspended *p = c->mcp->suspended;

	while (p && (strcmp(p->id, id) != 0 || strcmp(p->owner, c->owner) != 0))
		p = p->next;
	return p;
}

/* The client that came back is gone: nobody reads the result. */
static void on_cancel(struct mcp_call *c)
{
	struct mcp_suspended *p = c->work;

	p->waiter = NULL;
	if (p->call)
		mcp_call_cancel(p->call);
}

bool mcp_suspended_resume(struct mcp_call *c)
{
	const char *id = json_string_value(json_object_get(c->state, "call"));
	struct mcp_suspended *p = id ? find(c, id) : NULL;
	struct mcp_call *elder;
	json_t *more;

	if (!id)
		return false;
	if (!p) {
		mcp_fail(
			c, MCP_INVALID_PARAMS,
			"params.requestState: the call that it belongs to is over; begin again without it");
		return true;
	}
	elder = take_waiter(p);
	if (elder)
		mcp_fail(elder, MCP_INVALID_REQUEST,
			 "the same request came again and took the place of this one");
	if (p->response) {
		mcp_answer_with(c, p->response);
		forget(p);
		return true;
	}
	if (!p->call) {
		mcp_fail(c, MCP_INTERNAL, "the result was too large to be kept");
		forget(p);
		return true;
	}
	p->waiter = c;
	c->work = p;
	c->cancel = on_cancel;
	p->ops->answered(p->call, json_object_get(c->m.params, "inputResponses"));
	if (p->waiter != c)
		return true;
	more = p->ops->questions(p->call);
	if (json_object_size(more) > 0)
		ask_waiter(p);
	json_decref(more);
	return true;
}
