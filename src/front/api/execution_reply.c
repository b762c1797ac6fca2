/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execution_reply.c - Between an execution and the HTTP exchange that began it.
 *
 * Answered at the end, the exchange and the execution point at each other until one of them is
 * over. Streamed, they do not: the execution writes the log of its record, stream_out reads it, and
 * either may end first.
 */
#include "front/api/execution_reply.h"

#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "front/http/idempotency.h"
#include "front/http/reply.h"
#include "front/http/serve.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/record.h"
#include "front/sandbox/sandbox.h"
#include "front/sandbox/sandboxes.h"
#include "front/support/metrics.h"
#include "net/http.h"

/* ---- one answer ---------------------------------------------------------------------------- */

static void answer(struct execution *e)
{
	struct http_exchange *x = e->user;
	struct request_context *v = context_of(x);

	v->work = NULL;
	v->gone = NULL;
	if (e->refusal.kind)
		reply_refusal(x, &e->refusal);
	else
		reply_json(x, 200, execution_answer_json(e));
}

/* The client went away; another request with its Idempotency-Key may ask for the answer. */
static void keep_answer(struct execution *e)
{
	const struct buf *b = e->refusal.kind ? NULL : execution_answer_json(e);

	if (b && !b->err)
		idempotency_answer(e->user, 200, buf_str(b), b->len);
	else
		idempotency_drop(e->user);
}

static const struct sink answer_sink = { .done = answer };
static const struct sink kept_sink = { .done = keep_answer };

static void on_gone(struct request_context *v)
{
	struct execution *e = v->work;
	struct idempotency *i = e ? idempotency_take(e->user) : NULL;

	v->work = NULL;
	if (i) {
		e->sink = &kept_sink;
		e->user = i;
	} else if (e) {
		execution_cancel(e);
	}
}

/* ---- events -------------------------------------------------------------------------------- */

/* The last event comes with the end of the record. */
static void stream_done(struct execution *e)
{
	if (e->refusal.kind)
		metric_error(e->refusal.code);
}

static const struct sink stream_sink = { .congested = execution_readers_behind,
					 .done = stream_done };

static void on_drained(void *arg)
{
	execution_resume(arg);
}

static void cancel(struct deferred *d)
{
	execution_cancel(d->arg);
}

/* Later, because a reader may find itself lost while the execution writes an event. */
static void on_deserted(void *arg)
{
	struct execution *e = arg;

	if (e->sandbox && e->sandbox->name[0])
		return;
	e->deserted.fn = cancel;
	e->deserted.arg = e;
	loop_defer(e->sandboxes->loop, &e->deserted);
}

static const struct stream_ops stream_ops = { .drained = on_drained, .deserted = on_deserted };

bool execution_record_events(struct execution *e, struct sandbox *s)
{
	return execution_keep(e, s) && record_stream(e->record, &stream_ops, e);
}

/* ---- both ---------------------------------------------------------------------------------- */

static bool keep(struct execution *e, struct sandbox *s, enum stream_format format)
{
	if (format != STREAM_NONE)
		return execution_record_events(e, s);
	return !s->name[0] || execution_keep(e, s);
}

void execution_reply(struct http_exchange *x, struct sandbox *s, struct execution *e,
		     enum stream_format format)
{
	struct request_context *v = context_of(x);

	if (!keep(e, s, format)) {
		if (e->record)
			record_drop(e->record);
		execution_free(e);
		sandbox_step(s); /* one without a name has nothing to do, and ends */
		reply_retry(x, 503, 1, "out_of_memory", NULL, "the daemon is out of memory");
		return;
	}
	http_add_header(x, "X-Execution-Id", e->id);
	if (format == STREAM_NONE) {
		e->sink = &answer_sink;
		e->user = x;
		v->work = e;
		v->gone = on_gone;
	} else {
		e->sink = &stream_sink;
		stream_out_begin(x, e->record->log, 0, format);
	}
	sandbox_queue(s, e);
}
