/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execution_json.c - The result of an execution as JSON, and the record that keeps it.
 *
 * The record's result is an ExecResult, for a client that asks for it by id. The last event of the
 * stream has the form of the request that began it: a client that resumes a stream reads the same
 * stream.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "front/output/output_text.h"
#include "front/output/stream_log.h"
#include "front/sandbox/exec_result.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/record.h"
#include "front/sandbox/sandbox.h"
#include "front/sandbox/sandboxes.h"
#include "front/support/refusal.h"

/* ---- ExecResult ---------------------------------------------------------------------------- */

void exec_cause_members(const struct result *r, struct json *j)
{
	json_member_str(j, "status", result_status_name(r->status));
	if (r->cause != CAUSE_NONE)
		json_member_str(j, "cause", result_cause_name(r->cause));
	if (r->limit) {
		json_member_uint(j, "limit", r->limit);
		json_member_uint(j, "peak", r->peak);
	}
	if (r->hint[0])
		json_member_str(j, "hint", r->hint);
	if (r->signo)
		json_member_str(j, "signal",
				sigabbrev_np(r->signo) ? sigabbrev_np(r->signo) : "RT");
}

void exec_result_members(const struct exec_result *r, struct json *j)
{
	bool cut = output_json(r->out, j, "stdout", r->chars);

	cut |= output_json(r->err, j, "stderr", r->chars);
	output_both_json(r->out, r->err, j, r->chars);
	json_member_int(j, "exit_code", r->verdict->exit_code);
	json_member_bool(j, "ok", r->verdict->status == RESULT_OK);
	json_member_bool(j, "success", r->verdict->status == RESULT_OK);
	json_member_bool(j, "truncated", cut || r->dropped);
	exec_cause_members(r->verdict, j);
	json_key(j, "execution_time");
	json_double(j, (double)r->outcome->wall_ns / 1e9, 6);
	result_usage_json(j, r->outcome);
	json_member_str(j, "execution_id", r->execution_id);
}

void exec_left_members(struct json *j, const struct sandbox *s, bool reset, bool lost,
		       uint32_t epoch)
{
	bool named = s->name[0] != '\0';

	json_member_str(j, "state", !named ? "discarded" : reset ? "reset" : "kept");
	json_member_str(j, "files", !named ? "discarded" : lost ? "lost" : "kept");
	json_member_uint(j, "epoch", epoch);
}

/* ---- results of executions ----------------------------------------------------------------- */

static void raw_or_null(struct json *j, const char *key, const struct buf *b)
{
	json_key(j, key);
	if (b->len > 0 || b->err)
		json_buf(j, b);
	else
		json_none(j);
}

bool execution_cut(const struct execution *x)
{
	return x->result_cut || displays_cut(&x->displays);
}

static void write_streams(const struct execution *x, struct json *j)
{
	uint64_t chars = x->sandboxes->daemon->config.max_output;
	bool cut = output_json(x->streams[STREAM_STDOUT], j, "stdout", chars);

	cut |= output_json(x->streams[STREAM_STDERR], j, "stderr", chars);
	json_member_bool(j, "truncated", cut || execution_cut(x));
	json_member_uint(j, "stdout_bytes", x->streams[STREAM_STDOUT]->bytes);
	json_member_uint(j, "stderr_bytes", x->streams[STREAM_STDERR]->bytes);
	json_key(j, "execution_time");
	json_double(j, (double)(x->ended_ns - x->started_ns) / 1e9, 6);
}

/* The members that only kernels have. */
static void write_kernel(const struct execution *x, struct json *j)
{
	raw_or_null(j, "result", &x->result);
	displays_json(&x->displays, j);
	raw_or_null(j, "error", &x->error);
	exec_left_members(j, x->sandbox, x->kernel_ended || x->cell_gone, x->cell_gone, x->epoch);
}

void execution_json(const struct execution *x, struct json *j)
{
	json_object_begin(j);
	result_json(j, &x->verdict, &x->outcome);
	json_member_bool(j, "ok", x->verdict.status == RESULT_OK);
	json_member_bool(j, "success", x->verdict.status == RESULT_OK);
	write_streams(x, j);
	write_kernel(x, j);
	json_key(j, "session_id");
	if (x->sandbox->name[0])
		json_str(j, x->sandbox->name);
	else
		json_none(j);
	json_member_str(j, "language", x->language->name);
	json_member_str(j, "execution_id", x->id);
	json_object_end(j);
}

void execution_exec_json(const struct execution *x, struct json *j)
{
	struct exec_result r = {
		.execution_id = x->id,
		.verdict = &x->verdict,
		.outcome = &x->outcome,
		.out = x->streams[STREAM_STDOUT],
		.err = x->streams[STREAM_STDERR],
		.dropped = execution_cut(x),
		.chars = x->sandboxes->daemon->config.max_output,
	};

	json_object_begin(j);
	exec_result_members(&r, j);
	write_kernel(x, j);
	json_member_str(j, "language", x->language->name);
	json_object_end(j);
}

/* ---- the record ---------------------------------------------------------------------------- */

#define ANSWER_MAX (128u << 20)

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
	(void)json_finish(&j); /* an error is in b->err */
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
	if (x->refusal.kind && !r->started_ms && !r->log) { /* it never began, and has no stream */
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
