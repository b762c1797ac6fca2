/* SPDX-License-Identifier: Apache-2.0 */
/* handle_output.c - The latest executions of a sandbox, their results and output. */
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "front/api/exec.h"
#include "front/api/find_sandbox.h"
#include "front/api/handlers.h"
#include "front/api/spool_reply.h"
#include "front/http/reply.h"
#include "front/http/serve.h"
#include "front/http/stream_out.h"
#include "front/operations/services.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/record.h"
#include "front/sandbox/sandbox.h"
#include "net/http.h"

#define LIST_MAX (1u << 20)

/* ---- finding ------------------------------------------------------------------------------- */

static struct record *record_of(struct sandbox *s, struct http_exchange *x)
{
	struct record *r = records_find(&s->records, context_param(x, 1));

	if (!r)
		reply_missing(
			x, s, "no_such_execution", "execution_id",
			"see GET /v1/sandboxes/{name}/executions; they are kept for 15 minutes",
			"there is no such execution, or it is not kept any more");
	return r;
}

/* ---- records ------------------------------------------------------------------------------- */

void handle_executions(struct sandbox *s, struct http_exchange *x)
{
	struct reply answer;
	struct json *j = reply_object(&answer, LIST_MAX);

	json_member_array(j, "executions");
	for (const struct record *r = s->records.first; r; r = r->next) {
		json_object_begin(j);
		record_json(r, j);
		json_object_end(j);
	}
	json_array_end(j);
	reply_end(&answer, x, 200);
}

/* The result is kept as it was answered. */
static int put_result(const struct record *r, struct json *j)
{
	_buf_ struct buf b = BUF_INIT(SPOOL_CAP);
	bool refused = r->status && strcmp(r->status, "refused") == 0;

	if (!r->ended_ms || r->result.loss != SPOOL_WHOLE || r->result.kept == 0) {
		json_member_null(j, "result");
		return 0;
	}
	char *to = buf_reserve(&b, (size_t)r->result.kept);
	int64_t n = to ? spool_read(&r->result, 0, to, (size_t)r->result.kept) : -1;

	if (n < 0)
		return -1;
	json_key(j, refused ? "refusal" : "result");
	json_raw(j, to, (size_t)n);
	return 0;
}

void handle_execution(struct sandbox *s, struct http_exchange *x)
{
	_buf_ struct buf b = BUF_INIT(LIST_MAX + SPOOL_CAP);
	const struct record *r = record_of(s, x);
	struct json j;

	if (!r)
		return;
	json_init(&j, &b);
	json_object_begin(&j);
	record_json(r, &j);
	if (put_result(r, &j) < 0) {
		reply_error(x, 500, "spool_failed", NULL, "see the daemon's log and its disk",
			    "the result could not be read back");
		return;
	}
	json_object_end(&j);
	reply_written(x, 200, &j);
}

/* The one that is meant, and no other that may run in the sandbox by now. */
void handle_execution_interrupt(struct sandbox *s, struct http_exchange *x)
{
	const struct record *r = record_of(s, x);
	struct execution *e = s->head;

	if (!r)
		return;
	while (e && strcmp(e->id, r->id) != 0)
		e = e->next;
	if (e) { /* it runs, or waits for its turn */
		execution_interrupt(e);
	} else if (!exec_interrupt(r->id)) {
		reply_error(x, 404, "nothing_runs", "execution_id", NULL,
			    "this execution does not run now");
		return;
	}
	reply_empty(x, 202);
}

void handle_execution_events(struct sandbox *s, struct http_exchange *x)
{
	enum stream_format format = stream_format_of(x, true);
	const struct record *r = record_of(s, x);
	uint64_t cursor;

	if (!r || !stream_out_cursor(x, &cursor))
		return;
	exec_attached(context_param(x, 1));
	if (r->log)
		stream_out_begin(x, r->log, cursor, format);
	else if (r->streamed)
		reply_error(x, 410, "cursor_gone", "cursor",
			    "read the output by offset, or the result",
			    "the events are no longer kept");
	else
		reply_error(
			x, 409, "not_streamed", "execution_id",
			"ask for events with \"stream\": true; the output can be read by offset",
			"this execution was not streamed");
}

/* ---- output -------------------------------------------------------------------------------- */

void handle_execution_output(struct sandbox *s, struct http_exchange *x)
{
	const struct record *r = record_of(s, x);

	if (r)
		output_reply(x, output_is_stderr(x) ? &r->err : &r->out, r->ended_ms != 0);
}

static const struct spool *find(struct http_exchange *x, bool err)
{
	const struct request_context *v = context_of(x);
	const struct sandbox *s =
		sandbox_find(v->server->services->sandboxes, v->owner, v->params.value[0]);
	const struct record *r = s ? records_find(&s->records, v->params.value[1]) : NULL;

	return !r ? NULL : err ? &r->err : &r->out;
}

static const struct spool *find_out(struct http_exchange *x)
{
	return find(x, false);
}

static const struct spool *find_err(struct http_exchange *x)
{
	return find(x, true);
}

void handle_execution_search(struct sandbox *s, struct http_exchange *x)
{
	if (record_of(s, x))
		output_search(x, output_is_stderr(x) ? find_err : find_out);
}

/* ---- what was said ------------------------------------------------------------------------- */

#define LOG_MAX (TAIL_MAX + 1)

void handle_sandbox_logs(struct sandbox *s, struct http_exchange *x)
{
	_buf_ struct buf b = BUF_INIT(LOG_MAX);
	char bytes[24];

	tail_read(&s->log, context_number(x, "tail", SIZE_MAX), &b);
	reply_headers(x);
	/* Where this ends in all that was written: who asks again knows what is new. */
	(void)snprintf(bytes, sizeof(bytes), "%llu", (unsigned long long)s->log.bytes);
	http_add_header(x, "X-Log-Bytes", bytes);
	http_reply(x, 200, "text/plain", buf_str(&b), b.len);
}
