/* SPDX-License-Identifier: Apache-2.0 */
/* parked.c - The line of a call that waits for its client to come back. */
#include "front/mcp/parked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "front/mcp/call.h"
#include "front/mcp/mcp.h"
#include "front/mcp/mrtr.h"
#include "front/mcp/task.h"
#include "front/sandbox/execution.h"
#include "front/support/front.h"
#include "front/support/json_alloc.h"
#include "front/support/random_id.h"

#define PARKED_MAX 512u
#define PARKED_OWNER_MAX 32u
#define PARKED_BYTES (64u << 20)       /* of all results that are kept */
#define KEPT_NS (300 * CLOCK_NS_PER_S) /* a result, for a client that may come back */
#define QUESTIONS_MAX (4u << 20)

struct mcp_parked {
	struct front *f;
	struct mcp_parked *prev, *next;
	const struct mcp_parked_ops *ops;
	char id[33];
	char owner[OWNER_MAX];
	struct mcp_call *call;   /* the parked one, while it runs */
	struct mcp_call *waiter; /* the one that came back, or NULL */
	json_t *response;        /* what it ended with */
	size_t bytes;            /* of that */
	struct timer end;
};

static void forget(struct mcp_parked *p)
{
	timer_cancel(&p->end);
	if (p->prev)
		p->prev->next = p->next;
	else
		p->f->mcp->parked = p->next;
	if (p->next)
		p->next->prev = p->prev;
	p->f->mcp->n_parked--;
	p->f->mcp->parked_bytes -= p->bytes;
	json_decref(p->response);
	free(p);
}

static void on_end(struct timer *t)
{
	forget(t->arg);
}

void mcp_parked_end(struct front *f)
{
	while (f->mcp->parked)
		forget(f->mcp->parked);
}

static struct mcp_call *take_waiter(struct mcp_parked *p)
{
	struct mcp_call *c = p->waiter;

	p->waiter = NULL;
	if (c) {
		c->work = NULL;
		c->cancel = NULL;
	}
	return c;
}

/* ---- the line of the parked call ----------------------------------------------------------- */

static void line_send(struct mcp_call *c, const struct buf *json)
{
	(void)c; /* what it says on the way has a token of a request that was answered */
	(void)json;
}

static void line_finish(struct mcp_call *c, int status, const struct buf *json)
{
	struct mcp_parked *p = c->at;
	struct mcp_call *waiter = take_waiter(p);

	(void)status;
	p->call = NULL;
	if (json && p->f->mcp->parked_bytes + json->len <= PARKED_BYTES)
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
	p->f->mcp->parked_bytes += p->bytes;
	timer_set(&p->f->loop, &p->end, p->f->loop.now_ns + KEPT_NS);
}

static const struct mcp_line parked_line = { .send = line_send, .finish = line_finish };

/* ---- asking -------------------------------------------------------------------------------- */

static json_t *state_of(const struct mcp_parked *p)
{
	return json_pack("{s:s}", "parked", p->id);
}

static void task_answered(struct mcp_call *c, const json_t *responses)
{
	struct mcp_parked *p = c->work;
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

/* The one that came back is to ask; as a task it stays, otherwise that is its answer. */
static void ask_waiter(struct mcp_parked *p)
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

static bool may_park(const struct mcp_call *c)
{
	size_t own = 0;

	for (const struct mcp_parked *p = c->f->mcp->parked; p; p = p->next)
		own += strcmp(p->owner, c->owner) == 0;
	return c->era == MCP_MODERN && mcp_capable(c, "elicitation", NULL) &&
	       c->f->mcp->n_parked < PARKED_MAX && own < PARKED_OWNER_MAX;
}

static struct mcp_parked *add(struct mcp_call *c, const struct mcp_parked_ops *ops)
{
	struct mcp_parked *p = calloc(1, sizeof(*p));
	struct mcp *m = c->f->mcp;

	if (!p)
		return NULL;
	p->f = c->f;
	p->ops = ops;
	p->call = c;
	p->end = (struct timer){ .fn = on_end, .arg = p };
	random_id(p->id);
	(void)snprintf(p->owner, sizeof(p->owner), "%s", c->owner);
	p->next = m->parked;
	if (p->next)
		p->next->prev = p;
	m->parked = p;
	m->n_parked++;
	return p;
}

bool mcp_park(struct mcp_call *c, const struct mcp_parked_ops *ops)
{
	_buf_ struct buf b = BUF_INIT(QUESTIONS_MAX);
	struct mcp_parked *p;

	if (c->line == &parked_line) {
		p = c->at;
		if (p->waiter)
			ask_waiter(p);
		return true;
	}
	if (!may_park(c) || !(p = add(c, ops)))
		return false;
	if (!mcp_inputs_json(c, ops->questions(c), state_of(p), &b)) {
		forget(p);
		return false;
	}
	timer_cancel(&c->patience);
	mcp_call_move(c, &b, &parked_line, p);
	return true;
}

/* ---- coming back --------------------------------------------------------------------------- */

static struct mcp_parked *find(struct mcp_call *c, const char *id)
{
	struct mcp_parked *p = c->f->mcp->parked;

	while (p && (strcmp(p->id, id) != 0 || strcmp(p->owner, c->owner) != 0))
		p = p->next;
	return p;
}

/* The client that came back is gone: nobody wants the result. */
static void on_cancel(struct mcp_call *c)
{
	struct mcp_parked *p = c->work;

	p->waiter = NULL;
	if (p->call)
		mcp_call_cancel(p->call);
}

bool mcp_parked_resume(struct mcp_call *c)
{
	const char *id = json_string_value(json_object_get(c->state, "parked"));
	struct mcp_parked *p = id ? find(c, id) : NULL;
	struct mcp_call *elder;
	json_t *more;

	if (!id)
		return false;
	if (!p) {
		mcp_fail(c, MCP_INVALID_PARAMS,
			 "params.requestState: what it belongs to is over; begin again without it");
		return true;
	}
	elder = take_waiter(p);
	if (elder)
		mcp_fail(elder, MCP_INVALID_REQUEST,
			 "the same request came again, and has its place");
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
