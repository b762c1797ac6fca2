/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execution_record.c - The answer of an execution, and the record that keeps it.
 *
 * The record's result is an ExecResult, for whoever asks for it by id. The last event of the stream
 * has the form of the request that began it: a client that resumes a stream reads the same stream.
 */
#include <string.h>

#include "base/json.h"
#include "front/output/stream_log.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/record.h"
#include "front/sandbox/sandbox.h"
#include "front/sandbox/sandboxes.h"
#include "front/support/refusal.h"

#define ANSWER_MAX (128u << 20)

bool execution_keep(struct execution *x, struct sandbox *s)
{
	x->record = record_new(&s->records, x->id, x->language->name,
			       output_reserve(x->sandboxes->daemon->config.max_output));
	if (!x->record)
		return false;
	x->streams[STREAM_STDOUT] = &x->record->out;
	x->streams[STREAM_STDERR] = &x->record->err;
	return true;
}

bool execution_readers_behind(struct execution *x)
{
	return x->record && x->record->log && stream_log_congested(x->record->log);
}

static void write_answer(const struct execution *x, struct buf *b,
			 void (*write)(const struct execution *x, struct json *j))
{
	struct json j;

	if (x->refusal.kind) {
		refusal_json(&x->refusal, b);
		return;
	}
	json_init(&j, b);
	write(x, &j);
	(void)json_finish(&j); /* b->err */
}

const struct buf *execution_answer_json(struct execution *x)
{
	if (x->answer.len == 0) {
		buf_init(&x->answer, ANSWER_MAX);
		write_answer(x, &x->answer,
			     x->write_result ? x->write_result : execution_exec_json);
	}
	return &x->answer;
}

static const char *text_of(const struct buf *b)
{
	return b->err ? error_unwritten(b->err) : buf_str(b);
}

void execution_close_record(struct execution *x)
{
	_buf_ struct buf b = BUF_INIT(ANSWER_MAX);
	struct record *r = x->record;

	x->record = NULL;
	if (x->refusal.kind && !r->started_ms && !r->log) { /* it never began */
		record_drop(r);
		return;
	}
	const char *event = text_of(execution_answer_json(x)), *result = event;

	if (x->write_result) {
		write_answer(x, &b, execution_exec_json);
		result = text_of(&b);
	}
	if (x->refusal.kind)
		record_finish(r, "refused", "refused", result, event);
	else
		record_finish(r, "done", result_status_name(x->verdict.status), result, event);
}
