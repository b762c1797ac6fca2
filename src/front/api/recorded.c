/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorded.c - Between an execution, its record and the exchange that asked for it.
 *
 * Answered at the end, exchange and execution know each other, as in handle_execute.c. Streamed,
 * they do not: the execution writes the log of its record, stream_out reads it, and either may end
 * first.
 */
#include "front/api/recorded.h"

#include "front/api/find_sandbox.h"
#include "front/http/idempotency.h"
#include "front/http/reply.h"
#include "front/http/serve.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/record.h"
#include "front/sandbox/sandbox.h"
#include "front/support/front.h"
#include "front/support/metrics.h"
#include "net/http.h"

/* ---- one answer ---------------------------------------------------------------------------- */

static void answer(struct execution *e)
{
	struct http_exchange *x = e->user;
	struct request_context *v = context_of(x);

	v->work = NULL;
	v->gone = NULL;
	if (e->refusal.status)
		reply_refusal(x, &e->refusal);
	else
		reply_json(x, 200, execution_final(e));
}

/* Nobody waits, but somebody may ask again. */
static void keep_answer(struct execution *e)
{
	const struct buf *b = e->refusal.status ? NULL : execution_final(e);

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

static bool stream_congested(struct execution *e)
{
	return e->record && e->record->log && stream_log_congested(e->record->log);
}

/* The last event comes with the end of the record. */
static void stream_done(struct execution *e)
{
	if (e->refusal.status)
		metric_error(e->refusal.code);
}

/* Events go to the log of the record by themselves. */
static const struct sink stream_sink = { .congested = stream_congested, .done = stream_done };

static void on_drained(void *arg)
{
	execution_resume(arg);
}

/* In a sandbox without a name nobody can come back. */
static void on_deserted(void *arg)
{
	struct execution *e = arg;

	if (!e->sandbox || !e->sandbox->name[0])
		execution_cancel(e);
}

static const struct stream_ops stream_ops = { .drained = on_drained, .deserted = on_deserted };

/* ---- both ---------------------------------------------------------------------------------- */

void recorded_execute(struct http_exchange *x, struct sandbox *s, struct execution *e,
		      enum stream_format format)
{
	bool keep = s->name[0] || format != STREAM_NONE;

	if ((keep && !execution_keep(e, s)) ||
	    (format != STREAM_NONE && !record_stream(e->record, &stream_ops, e))) {
		if (e->record)
			record_drop(e->record);
		execution_free(e);
		reply_retry(x, 503, 1, "out_of_memory", NULL, "the daemon is out of memory");
		return;
	}
	http_add_header(x, "X-Execution-Id", e->id);
	e->sink = format == STREAM_NONE ? &answer_sink : &stream_sink;
	if (format == STREAM_NONE) {
		struct request_context *v = context_of(x);

		e->user = x;
		v->work = e;
		v->gone = on_gone;
	} else {
		e->user = NULL;
		stream_out_begin(x, e->record->log, 0, format);
	}
	sandbox_queue(s, e);
}
