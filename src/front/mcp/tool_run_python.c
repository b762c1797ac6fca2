/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tool_run_python.c - run_python(code, servers, timeout): Python that calls other servers' tools,
 * and prints what matters.
 *
 * One sandbox for one call. The result is small, because a model reads all of it: status, summary,
 * exit code and the lines that were printed; what is empty is left out. The exit code is the
 * interpreter's own.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "front/api/execute.h"
#include "front/mcp/code_text.h"
#include "front/mcp/mcp.h"
#include "front/mcp/tool.h"
#include "front/operations/operations.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/sandbox.h"
#include "front/sandbox/sandboxes.h"
#include "front/support/json_alloc.h"

#define SUMMARY_CHARS 300u

/* ---- the result ---------------------------------------------------------------------------- */

static const char *status_of(const struct execution *x)
{
	switch (x->verdict.status) {
	case RESULT_OK:
		return "success";
	case RESULT_TIMEOUT:
		return "timeout";
	default:
		return "error";
	}
}

/* "ValueError: not a number", of an exception that ended it; false: none did. */
static bool put_exception(const struct execution *x, struct buf *b)
{
	json_t *error = json_alloc_load(buf_str(&x->error), x->error.len, 0, NULL);
	const char *name = json_string_value(json_object_get(error, "name"));
	const char *value = json_string_value(json_object_get(error, "value"));

	if (name)
		(void)buf_printf(b, "%s%s%.*s", name, value && *value ? ": " : "",
				 value ? (int)utf8_truncate(value, strlen(value), SUMMARY_CHARS) :
					 0,
				 value ? value : "");
	json_decref(error);
	return name != NULL;
}

static void put_summary(const struct execution *x, struct buf *b)
{
	if (x->verdict.status == RESULT_OK)
		(void)buf_puts(b,
			       x->outcome.stdout_bytes || x->outcome.stderr_bytes || x->result.len ?
				       "Success" :
				       "Success, without output");
	else if (x->verdict.status == RESULT_TIMEOUT)
		(void)buf_printf(b, "Timeout: it ran for longer than %g s",
				 (double)x->timeout_ms / 1000);
	else if (x->verdict.cause != CAUSE_NONE)
		(void)buf_printf(b, "%s: %s", result_cause_name(x->verdict.cause), x->verdict.hint);
	else if (!put_exception(x, b))
		(void)buf_printf(b, "It ended with exit code %d", x->verdict.exit_code);
	if (x->verdict.cause == CAUSE_NONE && x->verdict.hint[0])
		(void)buf_printf(b, "; %s", x->verdict.hint);
}

/* Whether something was left out. */
static bool put_lines(struct json *j, const char *key, const struct spool *s, uint64_t chars)
{
	size_t len;
	const char *at = output_head(s, chars, &len), *end = at + len;

	if (at == end)
		return s->bytes > 0;
	json_member_array(j, key);
	while (at < end) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));

		(void)json_strn(j, at, (size_t)((nl ? nl : end) - at));
		at = nl ? nl + 1 : end;
	}
	json_array_end(j);
	return s->bytes > len;
}

static void write_structured(const struct execution *x, const struct code_view *v, struct json *j)
{
	uint64_t chars = x->sandboxes->daemon->config.max_output;
	_buf_ struct buf text = BUF_INIT(16384);

	json_object_begin(j);
	json_member_str(j, "status", status_of(x));
	put_summary(x, &text);
	json_member_str(j, "summary", buf_str(&text));
	json_member_int(j, "exitCode", x->verdict.exit_code);
	bool cut = put_lines(j, "stdout", x->streams[STREAM_STDOUT], chars);

	cut |= put_lines(j, "stderr", x->streams[STREAM_STDERR], chars);
	code_view_members(v, j);
	if (cut || v->cut)
		json_member_bool(j, "truncated", true);
	if (json_array_size(x->sandbox->spec.servers) > 0)
		json_member_value(j, "servers", x->sandbox->spec.servers);
	buf_clear(&text);
	if (put_exception(x, &text))
		json_member_str(j, "error", buf_str(&text));
	if (x->verdict.status == RESULT_TIMEOUT) {
		json_key(j, "timeoutSeconds");
		json_double(j, (double)x->timeout_ms / 1000, 3);
	}
}

static void on_done(struct execution *x)
{
	mcp_code_done(x, true, write_structured);
}

static const struct sink run_sink = { .approve = mcp_code_approve, .done = on_done };

/* ---- the call ------------------------------------------------------------------------------ */

/* Nothing ran: what is wrong with the arguments, in the shape of a result. */
static void refuse(struct mcp_call *c, const struct refusal *why)
{
	struct mcp_output o;

	if (why->kind != REFUSAL_INVALID) {
		mcp_output_refuse(c, why);
		return;
	}
	mcp_output_begin(c, &o);
	json_object_begin(&o.s);
	json_member_str(&o.s, "status", "validation_error");
	json_member_str(&o.s, "summary", why->message);
	json_member_int(&o.s, "exitCode", 1);
	json_member_str(&o.s, "error", why->code);
	json_object_end(&o.s);
	mcp_output_text(&o, why->message, strlen(why->message));
	if (why->hint)
		mcp_output_text(&o, why->hint, strlen(why->hint));
	mcp_output_end(c, &o, true);
}

/* A sandbox with the servers that are asked for; with none it has memory and saved tools all the
 * same. */
static struct sandbox *make_sandbox(struct mcp_call *c, const json_t *args, struct refusal *why)
{
	json_t *servers = json_incref(json_object_get(args, "servers"));
	json_t *body = json_pack("{s:o}", "servers", servers ? servers : json_array());
	struct sandbox_spec spec;
	struct sandbox *s = NULL;
	int r = sandbox_spec_parse(c->mcp->sandboxes->admission, c->owner, body, &spec, why);

	json_decref(body);
	if (r == 0)
		s = sandbox_create(c->mcp->sandboxes, c->owner, NULL, &spec, why);
	if (r == 0 && !s)
		sandbox_spec_free(&spec);
	return s;
}

static void run_python(struct mcp_call *c, json_t *args)
{
	struct refusal why = { 0 };
	struct execution *x = ask_execution(c->mcp->sandboxes, c->owner, args, &run_sink, c, &why);
	struct sandbox *s = x ? make_sandbox(c, args, &why) : NULL;

	if (!s) {
		if (x)
			execution_free(x);
		refuse(c, &why);
		return;
	}
	mcp_code_queue(c, s, x);
}

/* ---- the table ----------------------------------------------------------------------------- */

static const char schema[] =
	"{\"type\":\"object\",\"properties\":{"
	"\"status\":{\"type\":\"string\",\"enum\":[\"success\",\"error\",\"timeout\",\"validation_error\"]},"
	"\"summary\":{\"type\":\"string\"},\"exitCode\":{\"type\":\"integer\"},"
	"\"stdout\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"description\":\"lines\"},"
	"\"stderr\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"description\":\"lines\"},"
	"\"result\":{\"type\":\"string\",\"description\":\"value of the last expression\"},"
	"\"displays\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"description\":\"text of what was displayed\"},"
	"\"truncated\":{\"type\":\"boolean\"},"
	"\"servers\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
	"\"error\":{\"type\":\"string\"},\"timeoutSeconds\":{\"type\":\"number\"}},"
	"\"required\":[\"status\",\"summary\",\"exitCode\"]}";

const struct mcp_tool mcp_tools_run_python[] = {
	{ &operation_run_python_tool, run_python, TOOL_DESTRUCTIVE | TOOL_OPEN_WORLD,
	  TOOL_WITH_SERVERS, schema, .task = true },
	{ 0 },
};
