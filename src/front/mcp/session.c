/* SPDX-License-Identifier: Apache-2.0 */
/* session.c - Handshakes that are remembered, and questions that wait for their answers. */
#include "front/mcp/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/list.h"
#include "front/mcp/call.h"
#include "front/mcp/mcp.h"
#include "front/mcp/replay.h"
#include "front/mcp/tool.h"
#include "front/mcp/watch.h"
#include "front/support/name.h"

#define IDLE_NS (3600 * CLOCK_NS_PER_S)
#define QUESTION_MAX (1u << 20)

/* One whose client listens is in use. */
static void on_idle(struct timer *t)
{
	struct mcp_session *s = t->arg;

	if (s->outlet)
		mcp_session_touch(s);
	else
		mcp_session_end(s);
}

void mcp_session_touch(struct mcp_session *s)
{
	s->idle.fn = on_idle;
	s->idle.arg = s;
	timer_after(s->mcp->loop, &s->idle, IDLE_NS);
}

_Static_assert(MCP_SESSIONS_MAX == 1024 && MCP_SESSIONS_OWNER_MAX == 256,
	       "as MCP_SESSIONS_FULL has it");

/* No client listens on it or waits for an answer. */
static bool is_idle(const struct mcp_session *s)
{
	if (s->outlet)
		return false;
	for (const struct mcp_call *c = s->mcp->calls; c; c = c->next)
		if (c->session == s)
			return false;
	return true;
}

/* Whether the owner may have one more session. At the owner's bound, the session that was idle for
 * longest ends: a client that comes back to it gets 404 and begins again. */
static bool may_add(struct mcp *mcp, const char *owner)
{
	struct mcp_session *oldest = NULL;
	size_t own = 0;

	for (struct mcp_session *s = mcp->sessions; s; s = s->next) {
		if (strcmp(s->owner, owner) != 0)
			continue;
		own++;
		if ((!oldest || s->idle.at_ns < oldest->idle.at_ns) && is_idle(s))
			oldest = s;
	}
	if (own >= MCP_SESSIONS_OWNER_MAX) {
		if (!oldest)
			return false;
		mcp_session_end(oldest);
	}
	return mcp->n_sessions < MCP_SESSIONS_MAX;
}

struct mcp_session *mcp_session_new(struct mcp *mcp, const char *owner)
{
	struct mcp_session *s;

	if (!may_add(mcp, owner) || !(s = calloc(1, sizeof(*s))))
		return NULL;
	s->mcp = mcp;
	s->log_level = -1;
	(void)snprintf(s->owner, sizeof(s->owner), "%s", owner);
	s->tools = mcp_tools_hash(mcp, s->owner);
	random_id(s->id);
	LIST_PUSH(mcp->sessions, s);
	mcp->n_sessions++;
	mcp_session_touch(s);
	return s;
}

struct mcp_session *mcp_session_find(struct mcp *mcp, const char *owner, const char *id)
{
	for (struct mcp_session *s = mcp->sessions; s; s = s->next)
		if (strcmp(s->id, id) == 0 && strcmp(s->owner, owner) == 0)
			return s;
	return NULL;
}

void mcp_session_end(struct mcp_session *s)
{
	struct mcp *mcp = s->mcp;

	/* From the beginning each time: the end of one call may be that of another. */
	for (struct mcp_call *c = mcp->calls; c;) {
		if (c->session == s) {
			mcp_call_cancel(c);
			c = mcp->calls;
		} else {
			c = c->next;
		}
	}
	while (s->questions)
		mcp_unask(s->questions);
	if (s->outlet)
		s->outlet->ended(s);
	timer_cancel(&s->idle);
	LIST_DROP(s->mcp->sessions, s);
	s->mcp->n_sessions--;
	mcp_replays_free(s);
	json_decref(s->capabilities);
	json_decref(s->subscriptions);
	free(s);
	mcp_watches_sweep(mcp);
}

void mcp_session_send(struct mcp_session *s, const char *method, const struct buf *params)
{
	_buf_ struct buf b = BUF_INIT(QUESTION_MAX);

	mcp_note_json(&b, method, params);
	if (s->outlet && !b.err)
		s->outlet->send(s, &b);
}

/* ---- questions ----------------------------------------------------------------------------- */

void mcp_ask(struct mcp_call *c, struct mcp_question *q, const char *method,
	     const struct buf *params)
{
	_buf_ struct buf b = BUF_INIT(QUESTION_MAX);
	struct json j;

	q->session = c->session;
	q->id = ++c->session->asked;
	q->next = c->session->questions;
	c->session->questions = q;
	json_init(&j, &b);
	json_object_begin(&j);
	json_member_str(&j, "jsonrpc", "2.0");
	json_member_uint(&j, "id", q->id);
	json_member_str(&j, "method", method);
	json_key(&j, "params");
	json_buf(&j, params);
	json_object_end(&j);
	if (json_finish(&j) == 0)
		c->line->send(c, &b);
}

void mcp_unask(struct mcp_question *q)
{
	if (!q->session)
		return;
	for (struct mcp_question **p = &q->session->questions; *p; p = &(*p)->next)
		if (*p == q) {
			*p = q->next;
			break;
		}
	q->session = NULL;
}

bool mcp_session_response(struct mcp_session *s, const json_t *id, const json_t *result,
			  const json_t *error)
{
	struct mcp_question *q = s->questions;

	while (q && !(json_is_integer(id) && json_integer_value(id) == (json_int_t)q->id))
		q = q->next;
	if (!q)
		return false;
	mcp_unask(q);
	q->answered(q, result, error);
	return true;
}

void mcp_session_unanswered(struct mcp_session *s)
{
	json_t *error = json_pack("{s:i,s:s}", "code", MCP_BAD_SESSION, "message",
				  "the client answers no more");
	struct mcp_question *list = s->questions, *next;

	/* Questions that are asked meanwhile are not among them. */
	s->questions = NULL;
	for (; list; list = next) {
		next = list->next;
		list->session = NULL;
		list->answered(list, NULL, error);
	}
	json_decref(error);
}
