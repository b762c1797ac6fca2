/* SPDX-License-Identifier: Apache-2.0 */
/* execution_json.c - The one result object, for every wire. */
#include "base/json.h"
#include "front/sandbox/exec_result.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/sandbox.h"
#include "front/sandbox/sandboxes.h"

static void raw_or_null(struct json *j, const char *key, const struct buf *b)
{
	json_key(j, key);
	if (b->len > 0 || b->err)
		json_buf(j, b);
	else
		json_none(j);
}

static void write_streams(const struct execution *x, struct json *j)
{
	uint64_t chars = x->sandboxes->daemon->config.max_output;
	bool cut = output_json(x->streams[STREAM_STDOUT], j, "stdout", chars);

	cut |= output_json(x->streams[STREAM_STDERR], j, "stderr", chars);
	json_member_bool(j, "truncated", cut || x->displays_dropped > 0);
	json_member_uint(j, "stdout_bytes", x->streams[STREAM_STDOUT]->bytes);
	json_member_uint(j, "stderr_bytes", x->streams[STREAM_STDERR]->bytes);
	json_key(j, "execution_time");
	json_double(j, (double)(x->ended_ns - x->started_ns) / 1e9, 6);
}

/* What only kernels have. */
static void write_kernel(const struct execution *x, struct json *j)
{
	raw_or_null(j, "result", &x->result);
	json_key(j, "displays");
	json_array_begin(j);
	if (x->displays.len > 0 || x->displays.err)
		json_buf(j, &x->displays);
	json_array_end(j);
	if (x->displays_dropped)
		json_member_uint(j, "displays_dropped", x->displays_dropped);
	raw_or_null(j, "error", &x->error);
	json_member_str(j, "state", x->state);
	json_member_uint(j, "epoch", x->epoch);
}

void execution_json(const struct execution *x, struct json *j)
{
	json_object_begin(j);
	result_json(j, &x->verdict, &x->outcome);
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
		.dropped = x->displays_dropped > 0,
		.chars = x->sandboxes->daemon->config.max_output,
	};

	json_object_begin(j);
	exec_result_members(&r, j);
	write_kernel(x, j);
	json_member_str(j, "language", x->language->name);
	json_object_end(j);
}
