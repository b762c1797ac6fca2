/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tool_sandboxes.c - The sandbox that a tool's session_id names, and the tools for sandboxes
 * themselves: create_sandbox, list_sandboxes, remove_sandbox, interrupt.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "front/mcp/mcp.h"
#include "front/mcp/tool.h"
#include "front/mcp/tool_list.h"
#include "front/operations/operations.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/sandbox.h"
#include "front/sandbox/sandbox_json.h"
#include "front/sandbox/sandboxes.h"
#include "front/support/name.h"

static const char *name_of(const json_t *args)
{
	return json_string_value(json_object_get(args, "session_id"));
}

struct sandbox *mcp_find_sandbox(struct mcp_call *c, const json_t *args)
{
	struct sandbox *s = sandbox_find(c->mcp->sandboxes, c->owner, name_of(args));

	if (!s)
		mcp_output_fail(
			c, "no_such_session",
			"execute_code or write_file with this session_id makes it",
			"there is no session %s: it was never used, or was idle for too long and "
			"removed with everything in it",
			name_of(args));
	return s;
}

/* Whether the daemon stops, which takes no new work; then the call was answered. */
static bool is_draining(struct mcp_call *c)
{
	if (!c->mcp->daemon->draining)
		return false;
	mcp_output_fail(c, "draining", "try again in 5 s", "the daemon is shutting down");
	return true;
}

struct sandbox *mcp_obtain_sandbox(struct mcp_call *c, const json_t *args)
{
	struct refusal why = { 0 };
	struct sandbox *s;

	if (is_draining(c))
		return NULL;
	s = sandbox_obtain(c->mcp->sandboxes, c->owner, name_of(args), NULL, &why);
	if (!s)
		mcp_output_refuse(c, &why);
	return s;
}

static void answer(struct mcp_call *c, const struct sandbox *s)
{
	struct mcp_output o;

	mcp_output_begin(c, &o);
	json_object_begin(&o.s);
	json_member_str(&o.s, "session_id", s->name);
	json_key(&o.s, "sandbox");
	sandbox_json(s, NULL, &o.s);
	json_object_end(&o.s);
	mcp_output_printf(&o, "session_id %s is %s", s->name, sandbox_state_name(s->state));
	mcp_output_end(c, &o, false);
}

/* ---- making -------------------------------------------------------------------------------- */

static void create_sandbox(struct mcp_call *c, json_t *args)
{
	const char *name = name_of(args);
	struct sandbox_spec spec;
	struct refusal why = { 0 };
	struct sandbox *s;
	char random[33];

	if (!name) {
		random_id(random);
		name = random;
	}
	if (is_draining(c))
		return;
	if (sandbox_spec_parse(c->mcp->sandboxes->admission, c->owner, args, &spec, &why) < 0) {
		mcp_output_refuse(c, &why);
		return;
	}
	s = sandbox_find(c->mcp->sandboxes, c->owner, name);
	if (s) {
		bool same = sandbox_spec_same(&s->spec, &spec, &why);

		sandbox_spec_free(&spec);
		why.hint = "take another session_id, or remove_sandbox first";
		if (!same)
			mcp_output_refuse(c, &why);
		else if (s->state == SANDBOX_RUNNING)
			answer(c, s);
		else
			mcp_output_fail(c, "spec_conflict", why.hint,
					"there is one of this name already, and it is %s",
					sandbox_state_name(s->state));
		return;
	}
	s = sandbox_create(c->mcp->sandboxes, c->owner, name, &spec, &why);
	if (!s) {
		sandbox_spec_free(&spec);
		mcp_output_refuse(c, &why);
		return;
	}
	answer(c, s);
}

/* ---- the others ---------------------------------------------------------------------------- */

static void put_entry(const struct sandbox *s, struct mcp_list *l)
{
	json_object_begin(l->j);
	json_member_str(l->j, "session_id", s->name);
	json_member_str(l->j, "state", sandbox_state_name(s->state));
	json_member_bool(l->j, "busy", s->running);
	json_member_uint(l->j, "epoch", s->epoch);
	json_member_uint(l->j, "executions", s->executions);
	json_object_end(l->j);
	(void)buf_printf(&l->text, "%s: %s%s\n", s->name, sandbox_state_name(s->state),
			 s->running ? ", busy" : "");
}

static void list_sandboxes(struct mcp_call *c, json_t *args)
{
	const char *after = json_string_value(json_object_get(args, "cursor"));
	size_t n;
	struct sandbox **all = sandboxes_of(c->mcp->sandboxes, c->owner, after, &n);
	struct mcp_output o;
	struct mcp_list list;

	mcp_output_begin(c, &o);
	json_object_begin(&o.s);
	mcp_list_begin(&list, &o.s, "sandboxes", c->mcp->daemon->config.max_output);
	for (size_t i = 0; i < n && mcp_list_entry(&list); i++) {
		put_entry(all[i], &list);
		(void)mcp_list_next(&list);
	}
	mcp_list_end(&list, false, list.n ? all[list.n - 1]->name : NULL);
	json_object_end(&o.s);
	free(all);
	mcp_output_text(&o, buf_str(&list.text), list.text.len);
	mcp_list_free(&list);
	mcp_output_end(c, &o, false);
}

static void answer_flag(struct mcp_call *c, const char *key, bool value, const char *text)
{
	struct mcp_output o;

	mcp_output_begin(c, &o);
	json_object_begin(&o.s);
	json_member_bool(&o.s, key, value);
	json_object_end(&o.s);
	mcp_output_printf(&o, "%s", text);
	mcp_output_end(c, &o, false);
}

static void remove_sandbox(struct mcp_call *c, json_t *args)
{
	struct sandbox *s = mcp_find_sandbox(c, args);

	if (!s)
		return;
	sandbox_end(s, "removed by its owner");
	answer_flag(c, "removed", true, "removed, with everything in it");
}

static void interrupt(struct mcp_call *c, json_t *args)
{
	struct sandbox *s = mcp_find_sandbox(c, args);
	bool runs = s && s->head;

	if (!s)
		return;
	if (runs)
		execution_interrupt(s->head);
	answer_flag(c, "interrupted", runs,
		    runs ? "interrupted; variables are kept" : "nothing runs in it");
}

/* ---- the table ----------------------------------------------------------------------------- */

#define BOOLEAN_SCHEMA(member_)                                                                    \
	"{\"type\":\"object\",\"properties\":{\"" member_ "\":{\"type\":\"boolean\"}},"            \
	"\"required\":[\"" member_ "\"]}"

const struct mcp_tool mcp_tools_sandboxes[] = {
	{ &operation_create_sandbox, create_sandbox, TOOL_IDEMPOTENT, TOOL_BY_NAME,
	  "{\"type\":\"object\",\"properties\":{\"session_id\":{\"type\":\"string\"},"
	  "\"sandbox\":{\"type\":\"object\"}},\"required\":[\"session_id\"]}" },
	{ &operation_list_sandboxes, list_sandboxes, TOOL_READ_ONLY | TOOL_IDEMPOTENT, TOOL_BY_NAME,
	  "{\"type\":\"object\",\"properties\":{\"sandboxes\":{\"type\":\"array\"},"
	  "\"truncated\":{\"type\":\"boolean\"},\"next_cursor\":{\"type\":\"string\"}},"
	  "\"required\":[\"sandboxes\",\"truncated\"]}" },
	{ &operation_remove_sandbox, remove_sandbox, TOOL_DESTRUCTIVE | TOOL_IDEMPOTENT,
	  TOOL_BY_NAME, BOOLEAN_SCHEMA("removed") },
	{ &operation_interrupt_sandbox, interrupt, TOOL_IDEMPOTENT, TOOL_ALWAYS,
	  BOOLEAN_SCHEMA("interrupted") },
	{ 0 },
};
