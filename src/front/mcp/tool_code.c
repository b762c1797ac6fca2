/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tool_code.c - Tools that run code in kernels: execute_code, execute_python, run_shell.
 *
 * The result is told twice: as text in the order in which a person would read it, followed by
 * pictures, and as an object with everything that a program needs. Both have the daemon's bounds.
 * While it runs, lines of its output go to clients that asked for progress, a few times a second.
 */
#include "base/clock.h"
#include "front/api/execute.h"
#include "front/mcp/code_text.h"
#include "front/mcp/mcp.h"
#include "front/mcp/tool.h"
#include "front/operations/operations.h"
#include "front/sandbox/event.h"
#include "front/sandbox/exec_result.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/sandbox.h"
#include "front/sandbox/sandboxes.h"

#define LINE_NS (200 * CLOCK_NS_PER_MS)
#define LINE_CHARS 200u

/* ---- on the way ---------------------------------------------------------------------------- */

/* The last line of the text. */
static void on_event(struct execution *x, const struct event *ev)
{
	struct mcp_call *c = x->user;
	const char *text = ev->text;
	size_t len = ev->len, begin;

	if (ev->kind != EVENT_STDOUT && ev->kind != EVENT_STDERR)
		return;
	c->lines++;
	if (x->sandboxes->loop->now_ns < c->told_ns + LINE_NS)
		return;
	while (len > 0 && text[len - 1] == '\n')
		len--;
	begin = len;
	while (begin > 0 && text[begin - 1] != '\n' && len - begin < LINE_CHARS)
		begin--;
	if (len > begin) {
		c->told_ns = x->sandboxes->loop->now_ns;
		mcp_progress(c, c->lines, 0, text + begin, len - begin);
	}
}

/* ---- the result ---------------------------------------------------------------------------- */

static const char result_schema[] =
	"{\"type\":\"object\",\"properties\":{"
	"\"stdout\":{\"type\":\"string\"},\"stderr\":{\"type\":\"string\"},"
	"\"result\":{\"type\":\"string\",\"description\":\"value of the last expression\"},"
	"\"displays\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"description\":\"text of what was displayed\"},"
	"\"exit_code\":{\"type\":\"integer\"},\"ok\":{\"type\":\"boolean\"},\"success\":{\"type\":\"boolean\"},"
	"\"status\":{\"type\":\"string\",\"enum\":[\"ok\",\"error\",\"signal\",\"timeout\",\"limit\",\"failed\"]},"
	"\"cause\":{\"type\":\"string\"},\"hint\":{\"type\":\"string\"},"
	"\"truncated\":{\"type\":\"boolean\"},"
	"\"state\":{\"type\":\"string\",\"enum\":[\"kept\",\"reset\",\"discarded\"]},"
	"\"files_lost\":{\"type\":\"boolean\"},"
	"\"epoch\":{\"type\":\"integer\"},\"execution_time\":{\"type\":\"number\"},"
	"\"execution_id\":{\"type\":\"string\"},\"session_id\":{\"type\":\"string\"},"
	"\"files\":{\"type\":\"array\",\"description\":\"files that it made or changed\"},"
	"\"language\":{\"type\":\"string\"}},"
	"\"required\":[\"stdout\",\"stderr\",\"exit_code\",\"ok\",\"success\",\"status\",\"truncated\",\"state\",\"epoch\"]}";

/* The object stays open: files may follow. */
static void write_structured(const struct execution *x, const struct code_view *v, struct json *j)
{
	uint64_t chars = x->sandboxes->daemon->config.max_output;

	json_object_begin(j);
	bool cut = output_json(x->streams[STREAM_STDOUT], j, "stdout", chars);

	cut |= output_json(x->streams[STREAM_STDERR], j, "stderr", chars);
	code_view_members(v, j);
	json_member_int(j, "exit_code", x->verdict.exit_code);
	json_member_bool(j, "ok", x->verdict.status == RESULT_OK);
	json_member_bool(j, "success", x->verdict.status == RESULT_OK);
	exec_cause_members(&x->verdict, j);
	json_member_bool(j, "truncated", cut || v->cut);
	json_member_str(j, "state", x->state);
	if (x->cell_gone)
		json_member_bool(j, "files_lost", true);
	json_member_uint(j, "epoch", x->epoch);
	json_key(j, "execution_time");
	json_double(j, (double)x->outcome.wall_ns / 1e9, 6);
	json_member_str(j, "execution_id", x->id);
	if (x->sandbox->name[0])
		json_member_str(j, "session_id", x->sandbox->name);
	json_member_str(j, "language", x->language->name);
}

static void on_done(struct execution *x)
{
	mcp_code_done(x, false, write_structured);
}

static const struct sink quiet_sink = { .approve = mcp_code_approve, .done = on_done };
static const struct sink told_sink = { .event = on_event,
				       .approve = mcp_code_approve,
				       .done = on_done };

/* ---- the calls ----------------------------------------------------------------------------- */

static void run(struct mcp_call *c, json_t *args, const char *session)
{
	struct refusal why;

	(void)refusal_no_memory(&why); /* unless somebody says another reason */
	struct execution *x = ask_execution(c->mcp->sandboxes, c->owner, args,
					    mcp_wants_progress(c) ? &told_sink : &quiet_sink, c,
					    &why);
	struct sandbox *s = x ? sandbox_obtain(c->mcp->sandboxes, c->owner, session, NULL, &why) :
				NULL;

	if (!s || (session && !execution_keep(x, s))) {
		if (x)
			execution_free(x);
		mcp_output_refuse(c, &why);
		return;
	}
	x->look = session != NULL;
	mcp_code_queue(c, s, x);
}

static void run_code(struct mcp_call *c, json_t *args)
{
	run(c, args, ask_session(args));
}

/* A shell that stays is a kernel like others. */
static void run_shell(struct mcp_call *c, json_t *args)
{
	json_t *bash = json_copy(args); /* the request's own stay as they came: a seal may be on
					   them */

	(void)json_object_set(bash, "code", json_object_get(args, "command"));
	(void)json_object_set_new(bash, "language", json_string("bash"));
	run(c, bash, ask_session(args));
	json_decref(bash);
}

static void run_python(struct mcp_call *c, json_t *args)
{
	run(c, args, NULL);
}

/* ---- the table ----------------------------------------------------------------------------- */

const struct mcp_tool mcp_tools_code[] = {
	{ &operation_execute_in_sandbox, run_code, TOOL_DESTRUCTIVE, TOOL_ALWAYS, result_schema,
	  .task = true },
	{ &operation_run_python, run_python, TOOL_IDEMPOTENT, TOOL_ALWAYS, result_schema,
	  .task = true },
	{ &operation_run_shell_tool, run_shell, TOOL_DESTRUCTIVE, TOOL_ALWAYS, result_schema,
	  .task = true },
	{ 0 },
};
