/* SPDX-License-Identifier: Apache-2.0 */
/*
 * channel.c - From a message to its call, and from a call to the client's connection.
 *
 * Every request becomes a call whose line is the channel; a batch counts as one call. Without more
 * input the channel closes itself after its last answer.
 */
#include "front/mcp/channel.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "front/mcp/batch.h"
#include "front/mcp/call.h"
#include "front/mcp/mcp.h"
#include "front/mcp/session.h"
#include "front/support/schema.h"

#define CALLS_MAX 256u
#define ERROR_MAX 8192u

/* Nothing is written from now on. */
static void shut(struct mcp_channel *p, bool lost)
{
	p->dead = true;
	p->ops->close(p, lost);
}

/* ---- out ----------------------------------------------------------------------------------- */

static void put(struct mcp_channel *p, const struct buf *json)
{
	if (!p->dead)
		p->ops->write(p, json);
}

static void put_error(struct mcp_channel *p, const json_t *id, int code, const json_t *data,
		      const char *message)
{
	_buf_ struct buf b = BUF_INIT(ERROR_MAX);

	mcp_error_json(&b, id, code, data, message);
	if (!b.err)
		put(p, &b);
}

static bool is_congested(const struct mcp_channel *p)
{
	return !p->dead && p->ops->congested(p);
}

/* One thing that was under way. */
static void over(struct mcp_channel *p)
{
	p->n_calls--;
	if (p->no_input && p->n_calls == 0 && !p->dead)
		shut(p, false);
}

static void line_send(struct mcp_call *c, const struct buf *json)
{
	put(c->at, json);
}

static void line_finish(struct mcp_call *c, int status, const struct buf *json)
{
	struct mcp_channel *p = c->at;

	(void)status;
	if (json && json->len > MCP_CHANNEL_MESSAGE_MAX)
		put_error(p, c->m.id, MCP_INTERNAL, NULL,
			  "the answer is longer than 16 MiB: ask for less at once");
	else if (json)
		put(p, json);
	over(p);
}

static bool line_congested(const struct mcp_call *c)
{
	return is_congested(c->at);
}

static const struct mcp_line channel_line = { .send = line_send,
					      .finish = line_finish,
					      .congested = line_congested };

/* ---- the session --------------------------------------------------------------------------- */

static void outlet_send(struct mcp_session *s, const struct buf *json)
{
	put(s->at, json);
}

static void outlet_ended(struct mcp_session *s)
{
	struct mcp_channel *p = s->at;

	s->outlet = NULL;
	s->at = NULL;
	p->session = NULL;
	if (!p->dead)
		shut(p, true);
}

static const struct mcp_outlet channel_outlet = { outlet_send, outlet_ended };

struct mcp_channel *mcp_channel_of(const struct mcp_session *s)
{
	return s->outlet == &channel_outlet ? s->at : NULL;
}

bool mcp_channel_shake(struct mcp_channel *p)
{
	if (p->session)
		return true;
	p->session = mcp_session_new(p->mcp, p->owner);
	if (!p->session)
		return false;
	timer_cancel(&p->session->idle); /* it ends with the wire, and not before */
	p->session->outlet = &channel_outlet;
	p->session->at = p;
	return true;
}

/* ---- in ------------------------------------------------------------------------------------ */

static void run(struct mcp_channel *p, struct mcp_session *session, enum mcp_era era, json_t *value,
		const struct mcp_message *m)
{
	struct mcp_call *c;

	if (mcp_call_find(p->mcp, session, p, m->id)) {
		put_error(
			p, m->id, MCP_INVALID_REQUEST, NULL,
			"a request with this id is under way; give each request an id of its own");
		return;
	}
	if (p->n_calls >= CALLS_MAX) {
		put_error(p, m->id, MCP_INTERNAL, NULL,
			  "too many requests are under way: wait for answers");
		return;
	}
	c = mcp_call_new(p->mcp, p->owner, session, era, value, m, &channel_line, p);
	if (!c) {
		put_error(p, m->id, MCP_INTERNAL, NULL, "the daemon is out of memory");
		return;
	}
	p->n_calls++;
	mcp_call_run(c);
}

/* A ping is allowed before the handshake. */
static bool may_begin_with(const char *method)
{
	return strcmp(method, "initialize") == 0 || strcmp(method, "ping") == 0;
}

static void take_legacy(struct mcp_channel *p, json_t *value, const struct mcp_message *m)
{
	if (!mcp_channel_shake(p)) {
		if (m->kind == MCP_REQUEST)
			put_error(p, m->id, MCP_INTERNAL, NULL, MCP_SESSIONS_FULL);
		return;
	}
	if (m->kind == MCP_NOTIFICATION)
		mcp_notified(p->mcp, p->session, NULL, m);
	else if (m->kind == MCP_RESPONSE)
		(void)mcp_session_response(p->session, m->id, m->result, m->error);
	else if (!p->session->version && !may_begin_with(m->method))
		put_error(p, m->id, MCP_INVALID_REQUEST, NULL, "begin with initialize");
	else
		run(p, p->session, MCP_LEGACY, value, m);
}

static void take_one(struct mcp_channel *p, json_t *value)
{
	struct mcp_message m;
	struct mcp_ruling r;

	mcp_message_read(value, &m);
	if (m.kind == MCP_NONSENSE) {
		put_error(p, m.id, MCP_INVALID_REQUEST, NULL, m.why);
		return;
	}
	mcp_rule(&m, NULL, &r);
	if (r.http && m.kind == MCP_REQUEST)
		put_error(p, m.id, r.code, r.data, r.message);
	else if (!r.http && r.era == MCP_LEGACY)
		take_legacy(p, value, &m);
	else if (!r.http && m.kind == MCP_REQUEST)
		run(p, NULL, MCP_MODERN, value, &m);
	else if (!r.http && m.kind == MCP_NOTIFICATION)
		mcp_notified(p->mcp, NULL, p, &m);
	json_decref(r.data);
}

/* ---- several in one ------------------------------------------------------------------------ */

static void batch_send(void *at, const struct buf *json)
{
	put(at, json);
}

static bool batch_congested(const void *at)
{
	return is_congested(at);
}

static void batch_done(void *at, const struct buf *json)
{
	if (json)
		put(at, json);
	over(at);
}

static const struct mcp_batch_ops batch_ops = { batch_send, batch_congested, batch_done };

static void take_batch(struct mcp_channel *p, json_t *list)
{
	const char *why = mcp_batch_why_not(p->session, list);

	if (why) {
		put_error(p, NULL, MCP_INVALID_REQUEST, NULL, why);
		return;
	}
	p->n_calls++;
	if (!mcp_batch_run(p->session, list, MCP_CHANNEL_MESSAGE_MAX, &batch_ops, p)) {
		put_error(p, NULL, MCP_INTERNAL, NULL, "the daemon is out of memory");
		over(p);
	}
}

void mcp_channel_take_json(struct mcp_channel *p, json_t *value)
{
	if (p->dead)
		return;
	if (json_is_array(value))
		take_batch(p, value);
	else
		take_one(p, value);
}

void mcp_channel_take(struct mcp_channel *p, const char *text, size_t len)
{
	struct schema_error e;
	json_t *value = schema_load(text, len, &e);

	if (value)
		mcp_channel_take_json(p, value);
	else
		mcp_channel_refuse(p, e.message);
	json_decref(value);
}

void mcp_channel_refuse(struct mcp_channel *p, const char *why)
{
	put_error(p, NULL, MCP_PARSE_ERROR, NULL, why);
}

/* ---- life ---------------------------------------------------------------------------------- */

static void on_doom(struct deferred *d)
{
	shut(d->arg, true);
}

void mcp_channel_init(struct mcp_channel *p, struct mcp *mcp, const char *owner,
		      const struct mcp_channel_ops *ops)
{
	*p = (struct mcp_channel){ .ops = ops, .mcp = mcp, .doom = { .fn = on_doom, .arg = p } };
	(void)snprintf(p->owner, sizeof(p->owner), "%s", owner);
}

void mcp_channel_doom(struct mcp_channel *p)
{
	p->dead = true;
	loop_defer(p->mcp->loop, &p->doom);
}

/* The first call on this wire for which @which is true, or NULL. */
static struct mcp_call *find(const struct mcp_channel *p, bool (*which)(const struct mcp_call *c))
{
	for (struct mcp_call *c = p->mcp->calls; c; c = c->next)
		if (c->line == &channel_line && c->at == p && which(c))
			return c;
	return NULL;
}

static bool is_any(const struct mcp_call *c)
{
	(void)c;
	return true;
}

/* A subscription: it ends only when it is cancelled. */
static bool is_endless(const struct mcp_call *c)
{
	return strcmp(c->m.method, "subscriptions/listen") == 0;
}

/* Each of these calls goes on with its own work only. */
void mcp_channel_drained(struct mcp_channel *p)
{
	for (struct mcp_call *c = p->mcp->calls, *next; c && !p->dead; c = next) {
		next = c->next;
		if (c->line == &channel_line && c->at == p && c->drained)
			c->drained(c);
	}
}

void mcp_channel_no_input(struct mcp_channel *p)
{
	struct mcp_call *c;

	while ((c = find(p, is_endless)))
		mcp_call_cancel(c);
	if (p->session)
		mcp_session_unanswered(p->session);
	p->no_input = true;
	if (p->n_calls == 0 && !p->dead)
		shut(p, false);
}

void mcp_channel_end(struct mcp_channel *p)
{
	struct mcp_session *s = p->session;
	struct mcp_call *c;

	p->dead = true;
	loop_undefer(p->mcp->loop, &p->doom);
	while ((c = find(p, is_any)))
		mcp_call_cancel(c);
	if (s)
		mcp_session_end(s);
}
