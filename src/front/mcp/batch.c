/* SPDX-License-Identifier: Apache-2.0 */
/* batch.c - A line that collects. */
#include "front/mcp/batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "front/mcp/call.h"
#include "front/mcp/session.h"

#define ERROR_MAX 2048u /* an error in place of an answer that does not fit is shorter */

struct mcp_batch {
	const struct mcp_batch_ops *ops;
	void *at;
	size_t pending; /* calls under way, and one while there are messages left */
	size_t max;
	struct buf answers; /* without the closing bracket */
};

/* ---- answers ------------------------------------------------------------------------------- */

static void put(struct mcp_batch *b, const struct buf *json)
{
	(void)buf_puts(&b->answers, b->answers.len ? "," : "[");
	(void)buf_append(&b->answers, buf_str(json), json->len);
}

static void put_error(struct mcp_batch *b, const json_t *id, int code, const char *message)
{
	_buf_ struct buf e = BUF_INIT(ERROR_MAX);

	mcp_error_json(&e, id, code, NULL, message);
	put(b, &e);
}

static void settle(struct mcp_batch *b)
{
	if (--b->pending > 0)
		return;
	if (b->answers.len > 0)
		(void)buf_puts(&b->answers, "]");
	b->ops->done(b->at, b->answers.len > 0 && !b->answers.err ? &b->answers : NULL);
	buf_free(&b->answers);
	free(b);
}

static void line_send(struct mcp_call *c, const struct buf *json)
{
	const struct mcp_batch *b = c->at;

	b->ops->send(b->at, json);
}

static void line_finish(struct mcp_call *c, int status, const struct buf *json)
{
	struct mcp_batch *b = c->at;

	(void)status;
	if (json && b->answers.len + json->len > b->max)
		put_error(b, c->m.id, MCP_INTERNAL,
			  "the answers of this batch are too long together: ask one by one");
	else if (json)
		put(b, json);
	settle(b);
}

static bool line_congested(const struct mcp_call *c)
{
	const struct mcp_batch *b = c->at;

	return b->ops->congested(b->at);
}

static const struct mcp_line batch_line = { .send = line_send,
					    .finish = line_finish,
					    .congested = line_congested };

/* ---- messages ------------------------------------------------------------------------------ */

const char *mcp_batch_why_not(const struct mcp_session *s, const json_t *list)
{
	size_t n = json_array_size(list);

	if (!s || !s->version || !mcp_version_has_batches(s->version))
		return "a batch is for sessions of revision 2025-03-26 and before: send one message";
	if (n == 0)
		return "a batch has messages in it";
	return n > MCP_BATCH_MAX ? "a batch has at most 64 messages" : NULL;
}

bool mcp_batch_asks(const json_t *list)
{
	struct mcp_message m;
	size_t i;
	json_t *v;

	json_array_foreach(list, i, v)
	{
		mcp_message_read(v, &m);
		if (m.kind == MCP_REQUEST || m.kind == MCP_NONSENSE)
			return true;
	}
	return false;
}

static void run(struct mcp_batch *b, struct mcp_session *s, json_t *value,
		const struct mcp_message *m)
{
	struct mcp_call *c;

	if (strcmp(m->method, "initialize") == 0) {
		put_error(b, m->id, MCP_INVALID_REQUEST, "initialize is not part of a batch");
		return;
	}
	if (mcp_call_find(s->mcp, s, NULL, m->id)) {
		put_error(b, m->id, MCP_INVALID_REQUEST, "a request with this id is under way");
		return;
	}
	c = mcp_call_new(s->mcp, s->owner, s, MCP_LEGACY, value, m, &batch_line, b);
	if (!c) {
		put_error(b, m->id, MCP_INTERNAL, "the daemon is out of memory");
		return;
	}
	b->pending++;
	mcp_call_run(c);
}

static void take(struct mcp_batch *b, struct mcp_session *s, json_t *value)
{
	struct mcp_message m;

	mcp_message_read(value, &m);
	if (m.kind == MCP_NONSENSE)
		put_error(b, m.id, MCP_INVALID_REQUEST, m.why);
	else if (json_object_get(m.meta, MCP_META_VERSION) && m.kind == MCP_REQUEST)
		put_error(b, m.id, MCP_INVALID_REQUEST, "this revision has no batches");
	else if (m.kind == MCP_REQUEST)
		run(b, s, value, &m);
	else if (m.kind == MCP_NOTIFICATION)
		mcp_notified(s->mcp, s, NULL, &m);
	else
		(void)mcp_session_response(s, m.id, m.result, m.error);
}

bool mcp_batch_run(struct mcp_session *s, json_t *list, size_t max, const struct mcp_batch_ops *ops,
		   void *at)
{
	struct mcp_batch *b = calloc(1, sizeof(*b));
	size_t i;
	json_t *v;

	if (!b)
		return false;
	*b = (struct mcp_batch){ .ops = ops, .at = at, .pending = 1 };
	b->max = max - (size_t)MCP_BATCH_MAX * ERROR_MAX;
	buf_init(&b->answers, max);
	json_array_foreach(list, i, v) take(b, s, v);
	settle(b);
	return true;
}
