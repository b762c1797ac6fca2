/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tool_processes.c - Programs in the background of a session: start_process, list_processes,
 * process_output, process_input, stop_process.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "front/mcp/mcp.h"
#include "front/mcp/tool.h"
#include "front/mcp/tool_list.h"
#include "front/mcp/tool_spool.h"
#include "front/operations/operations.h"
#include "front/sandbox/process.h"
#include "front/support/daemon.h"

#define COMMAND_CHARS 200u

/* ---- one who waits ------------------------------------------------------------------------- */

struct waiter {
	struct process_listener listener;
	struct mcp_call *c;
	struct timer timer;
	json_t *args; /* of the call */
};

static void waiter_end(struct waiter *w)
{
	w->c->work = NULL;
	w->c->cancel = NULL;
	timer_cancel(&w->timer);
	process_unlisten(&w->listener);
	free(w);
}

static void on_cancel(struct mcp_call *c)
{
	waiter_end(c->work);
}

static struct waiter *waiter_new(struct mcp_call *c, json_t *args)
{
	struct waiter *w = calloc(1, sizeof(*w));

	if (!w) {
		mcp_output_fail(c, "out_of_memory", NULL, "the daemon is out of memory");
		return NULL;
	}
	w->c = c;
	w->args = args;
	w->listener.arg = w;
	w->timer.arg = w;
	c->work = w;
	c->cancel = on_cancel;
	return w;
}

static struct process *own_process(struct mcp_call *c, const json_t *args)
{
	struct sandbox *s = mcp_find_sandbox(c, args);
	struct process *p =
		s ? process_find(s, json_string_value(json_object_get(args, "process_id"))) : NULL;

	if (s && !p)
		mcp_output_fail(
			c, "no_such_process", "see list_processes",
			"there is no such process in this session, or it is not kept any more");
	return p;
}

/* The command; the caller knows it, so its beginning is enough. */
static const char *command_of(const struct process *p, size_t *len, bool *cut)
{
	const char *text = json_string_value(
		json_array_size(p->args) > 1 ? json_array_get(p->args, 1) : p->cmd);

	text = text ? text : "";
	*len = utf8_truncate(text, strlen(text), COMMAND_CHARS);
	*cut = text[*len] != '\0';
	return text;
}

static void put_process(const struct process *p, struct json *j, struct buf *text)
{
	size_t len;
	bool cut;
	const char *command = command_of(p, &len, &cut);

	json_object_begin(j);
	process_members(p, j);
	json_key(j, "command");
	(void)json_strn(j, command, len);
	if (cut)
		json_member_bool(j, "command_truncated", true);
	json_object_end(j);
	if (p->exited)
		(void)buf_printf(text, "process_id %s: exited with %d: ", p->id,
				 p->command.verdict.exit_code);
	else
		(void)buf_printf(text, "process_id %s: running, pid %d: ", p->id, p->command.pid);
	(void)buf_append(text, command, len);
	(void)buf_puts(text, cut ? "...\n" : "\n");
	if (p->exited && p->command.verdict.hint[0])
		(void)buf_printf(text, "  %s\n", p->command.verdict.hint);
}

static void answer(struct mcp_call *c, const struct process *p)
{
	_buf_ struct buf text = BUF_INIT(4096);
	struct mcp_output o;

	mcp_output_begin(c, &o);
	put_process(p, &o.s, &text);
	mcp_output_text(&o, buf_str(&text), text.len);
	mcp_output_end(c, &o, false);
}

/* ---- starting ------------------------------------------------------------------------------ */

static void on_started(struct process_listener *l)
{
	struct waiter *w = l->arg;
	struct process *p = l->process;
	struct mcp_call *c = w->c;

	waiter_end(w);
	if (p->started)
		answer(c, p);
	else if (p->command.refusal.kind)
		mcp_output_refuse(c, &p->command.refusal);
	else
		mcp_output_fail(c, "cannot_start", NULL, "%s", p->command.verdict.hint);
}

static void start_process(struct mcp_call *c, json_t *args)
{
	const char *cwd = json_string_value(json_object_get(args, "cwd"));
	struct sandbox *s = mcp_obtain_sandbox(c, args);
	struct waiter *w = s ? waiter_new(c, args) : NULL;
	json_t *body;
	struct refusal why;

	if (!w)
		return;
	w->listener.started = on_started;
	body = json_pack("{s:s, s:[s, O], s:b}", "cmd", "/bin/bash", "args", "-c",
			 json_object_get(args, "command"), "stdin", 1);
	if (cwd)
		(void)json_object_set_new(body, "cwd", json_string(cwd));
	if (!body || process_new(s, body, &w->listener, &why) < 0) {
		waiter_end(w);
		mcp_output_refuse(c, &why);
	}
	json_decref(body);
}

static void list_processes(struct mcp_call *c, json_t *args)
{
	const json_t *cursor = json_object_get(args, "cursor");
	struct sandbox *s = mcp_find_sandbox(c, args);
	const struct process *p, *last = NULL;
	struct mcp_output o;
	struct mcp_list list;

	if (!s)
		return;
	p = cursor ? process_find(s, json_string_value(cursor)) : NULL;
	if (cursor && !p) {
		mcp_output_fail(c, "invalid_value", "begin without a cursor",
				"cursor: unknown or expired");
		return;
	}
	mcp_output_begin(c, &o);
	json_object_begin(&o.s);
	mcp_list_begin(&list, &o.s, "processes", c->mcp->daemon->config.max_output);
	for (p = processes_next(s, p); p && mcp_list_entry(&list); p = processes_next(s, p)) {
		put_process(p, &o.s, &list.text);
		last = mcp_list_next(&list) ? p : last;
	}
	mcp_list_end(&list, false, last ? last->id : NULL);
	json_object_end(&o.s);
	mcp_output_text(&o, buf_str(&list.text), list.text.len);
	mcp_list_free(&list);
	mcp_output_end(c, &o, false);
}

/* ---- output -------------------------------------------------------------------------------- */

static void state_members(struct json *j, const void *arg)
{
	const struct process *p = arg;

	json_member_str(j, "state", p->exited ? "exited" : "running");
	if (p->exited)
		json_member_int(j, "exit_code", p->command.verdict.exit_code);
}

static void put_part(struct mcp_call *c, const struct process *p, const json_t *args)
{
	mcp_output_spool(c, &p->spool[mcp_is_stderr(args) ? COMMAND_STDERR : COMMAND_STDOUT], args,
			 p->exited, state_members, p);
}

static void on_news(struct process_listener *l)
{
	struct waiter *w = l->arg;
	struct mcp_call *c = w->c;
	json_t *args = w->args;
	const struct process *p = l->process;

	waiter_end(w);
	put_part(c, p, args);
}

static void on_output(struct process_listener *l, enum command_stream stream, const char *data,
		      size_t len)
{
	struct waiter *w = l->arg;

	(void)data;
	(void)len;
	if (mcp_is_stderr(w->args) == (stream == COMMAND_STDERR))
		on_news(l);
}

static void on_late(struct timer *t)
{
	on_news(&((struct waiter *)t->arg)->listener);
}

static void on_forgotten(struct process_listener *l)
{
	struct waiter *w = l->arg;
	struct mcp_call *c = w->c;

	waiter_end(w);
	mcp_output_fail(c, "no_such_process", NULL, "the process was removed meanwhile");
}

static void process_output(struct mcp_call *c, json_t *args)
{
	struct process *p = own_process(c, args);
	json_int_t wait = json_integer_value(json_object_get(args, "wait_seconds"));
	uint64_t offset = (uint64_t)json_integer_value(json_object_get(args, "offset"));
	struct waiter *w;

	if (!p)
		return;
	if (p->exited || wait == 0 ||
	    p->spool[mcp_is_stderr(args) ? COMMAND_STDERR : COMMAND_STDOUT].kept > offset) {
		put_part(c, p, args);
		return;
	}
	if (!(w = waiter_new(c, args)))
		return;
	w->listener.output = on_output;
	w->listener.exited = on_news;
	w->listener.forgotten = on_forgotten;
	w->timer.fn = on_late;
	process_listen(p, &w->listener);
	timer_after(c->mcp->loop, &w->timer, (uint64_t)wait * CLOCK_NS_PER_S);
}

/* ---- input and the end --------------------------------------------------------------------- */

static void process_input(struct mcp_call *c, json_t *args)
{
	const json_t *data = json_object_get(args, "data");
	struct process *p = own_process(c, args);
	int r = 0;

	if (!p)
		return;
	if (data)
		r = command_input(&p->command, json_string_value(data), json_string_length(data));
	if (r == 0 && json_is_true(json_object_get(args, "close")))
		command_input_end(&p->command);
	if (r == -EAGAIN)
		mcp_output_fail(c, "input_full", "try again when it has read some",
				"it does not read what it was given");
	else if (r < 0)
		mcp_output_fail(c, "input_closed", NULL, "its input is closed");
	else
		answer(c, p);
}

static void stop_process(struct mcp_call *c, json_t *args)
{
	const char *name = json_string_value(json_object_get(args, "signal"));
	struct process *p = own_process(c, args);
	int signo = name ? process_signal_number(name) : SIGTERM;

	if (!p)
		return;
	if (!signo)
		mcp_output_fail(c, "invalid_value", "TERM, KILL, INT, HUP, USR1, ...",
				"signal: there is no signal %.40s", name);
	else if (!command_signal(&p->command, signo, true))
		mcp_output_fail(c, "not_running", "see list_processes", "it does not run any more");
	else
		answer(c, p);
}

/* ---- the table ----------------------------------------------------------------------------- */

#define PROCESS_SCHEMA                                                                             \
	"{\"type\":\"object\",\"properties\":{\"process_id\":{\"type\":\"string\"},"               \
	"\"state\":{\"type\":\"string\"},\"exit_code\":{\"type\":\"integer\"}},"                   \
	"\"required\":[\"process_id\",\"state\"]}"

const struct mcp_tool mcp_tools_processes[] = {
	{ &operation_start_process, start_process, TOOL_DESTRUCTIVE, TOOL_BY_NAME, PROCESS_SCHEMA },
	{ &operation_list_processes, list_processes, TOOL_READ_ONLY | TOOL_IDEMPOTENT, TOOL_BY_NAME,
	  "{\"type\":\"object\",\"properties\":{\"processes\":{\"type\":\"array\"},"
	  "\"truncated\":{\"type\":\"boolean\"},\"next_cursor\":{\"type\":\"string\"}},"
	  "\"required\":[\"processes\",\"truncated\"]}" },
	{ &operation_process_output, process_output, TOOL_READ_ONLY | TOOL_IDEMPOTENT, TOOL_BY_NAME,
	  "{\"type\":\"object\",\"properties\":{\"next_offset\":{\"type\":\"integer\"},"
	  "\"complete\":{\"type\":\"boolean\"},\"state\":{\"type\":\"string\"},"
	  "\"content\":{\"type\":\"string\"}},"
	  "\"required\":[\"next_offset\",\"complete\",\"state\"]}" },
	{ &operation_write_stdin, process_input, TOOL_DESTRUCTIVE, TOOL_BY_NAME, PROCESS_SCHEMA },
	{ &operation_signal_process, stop_process, TOOL_DESTRUCTIVE | TOOL_IDEMPOTENT, TOOL_BY_NAME,
	  PROCESS_SCHEMA },
	{ 0 },
};
