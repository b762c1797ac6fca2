/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tool_sandboxes.c - The sessions themselves: create_sandbox, list_sandboxes, remove_sandbox,
 * interrupt.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "front/api/routes.h"
#include "front/mcp/place.h"
#include "front/mcp/tool.h"
#include "front/mcp/tool_list.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/sandbox.h"
#include "front/sandbox/sandbox_json.h"
#include "front/support/front.h"
#include "front/support/random_id.h"

#define SPEC_FIELDS_MAX 64u

static void answer(struct mcp_call *c, const struct sandbox *s)
{
	struct mcp_output o;
	char text[128];

	(void)snprintf(text, sizeof(text), "session_id %s is %s", s->name,
		       sandbox_state_name(s->state));
	mcp_output_begin(c, &o);
	json_object_begin(&o.s);
	json_member_str(&o.s, "session_id", s->name);
	json_key(&o.s, "sandbox");
	sandbox_json(s, NULL, &o.s);
	json_object_end(&o.s);
	mcp_output_text(&o, text, strlen(text));
	mcp_output_end(c, &o, false);
}

/* ---- making -------------------------------------------------------------------------------- */

static void create_sandbox(struct mcp_call *c, json_t *args)
{
	const char *name = json_string_value(json_object_get(args, "session_id"));
	struct sandbox_spec spec;
	struct refusal why = { 0 };
	struct sandbox *s;
	char random[33];

	if (!name) {
		random_id(random);
		name = random;
	}
	if (c->f->draining) {
		mcp_output_fail(c, "draining", "try again in 5 s", "the daemon is shutting down");
		return;
	}
	if (sandbox_spec_parse(c->f, c->owner, args, &spec, &why) < 0) {
		mcp_output_refuse(c, &why);
		return;
	}
	s = sandbox_find(c->f, c->owner, name);
	if (s) {
		bool same = s->state == SANDBOX_RUNNING && sandbox_spec_equal(&s->spec, &spec);

		sandbox_spec_free(&spec);
		if (same)
			answer(c, s);
		else
			mcp_output_fail(
				c, "spec_conflict",
				"take another session_id, or remove_sandbox first",
				"there is one of this name already, with other limits or stopped");
		return;
	}
	s = sandbox_create(c->f, c->owner, name, &spec, &why);
	if (!s) {
		sandbox_spec_free(&spec);
		mcp_output_refuse(c, &why);
		return;
	}
	answer(c, s);
}

/* ---- the others ---------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
	return strcmp((*(const struct sandbox *const *)a)->name,
		      (*(const struct sandbox *const *)b)->name);
}

/* The caller's that come after @after, in the order of their names. The caller frees them. */
static const struct sandbox **own_sandboxes(const struct mcp_call *c, const char *after,
					    size_t *ret)
{
	const struct sandbox **all;
	size_t n = 0;

	for (const struct sandbox *s = c->f->sandboxes; s; s = s->next)
		n++;
	all = calloc(n + 1, sizeof(struct sandbox *));
	n = 0;
	for (const struct sandbox *s = c->f->sandboxes; s && all; s = s->next)
		if (s->name[0] && strcmp(s->owner, c->owner) == 0 && strcmp(s->name, after) > 0)
			all[n++] = s;
	if (n > 0)
		qsort(all, n, sizeof(struct sandbox *), by_name);
	*ret = n;
	return all;
}

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
	const struct sandbox **all = own_sandboxes(c, after ? after : "", &n);
	struct mcp_output o;
	struct mcp_list list;

	mcp_output_begin(c, &o);
	json_object_begin(&o.s);
	json_key(&o.s, "sandboxes");
	json_array_begin(&o.s);
	mcp_list_begin(&list, &o.s, c->f->config.max_output);
	for (size_t i = 0; i < n && mcp_list_entry(&list); i++) {
		put_entry(all[i], &list);
		(void)mcp_list_next(&list);
	}
	json_array_end(&o.s);
	mcp_list_end(&list, false, list.n ? all[list.n - 1]->name : NULL);
	json_object_end(&o.s);
	free(all);
	mcp_output_text(&o, buf_str(&list.text), list.text.len);
	mcp_list_free(&list);
	mcp_output_end(c, &o, false);
}

static void say(struct mcp_call *c, const char *key, bool value, const char *text)
{
	struct mcp_output o;

	mcp_output_begin(c, &o);
	json_object_begin(&o.s);
	json_member_bool(&o.s, key, value);
	json_object_end(&o.s);
	mcp_output_text(&o, text, strlen(text));
	mcp_output_end(c, &o, false);
}

static void remove_sandbox(struct mcp_call *c, json_t *args)
{
	struct sandbox *s = mcp_place_find(c, args);

	if (!s)
		return;
	sandbox_end(s, "removed by its owner");
	say(c, "removed", true, "removed, with everything in it");
}

static void interrupt(struct mcp_call *c, json_t *args)
{
	struct sandbox *s = mcp_place_find(c, args);
	bool runs = s && s->head;

	if (!s)
		return;
	if (runs)
		execution_interrupt(s->head);
	say(c, "interrupted", runs,
	    runs ? "interrupted; variables are kept" : "nothing runs in it");
}

/* ---- the table ----------------------------------------------------------------------------- */

static const struct field name_field = {
	.name = "session_id",
	.kind = FIELD_STRING,
	.min = 1,
	.max = NAME_LENGTH_MAX,
	.pattern = NAME_PATTERN,
	.check = name_ok,
	.description = "A name of yours; without one it gets a random one.",
};
static struct field create_input[SPEC_FIELDS_MAX + 2];

/* What others can ask for a model can: how much of it is for the operator's policy to say. */
void mcp_tools_sandboxes_setup(void)
{
	size_t n = 0;

	create_input[0] = name_field;
	while (routes_spec_fields[n].name)
		n++;
	if (n > SPEC_FIELDS_MAX)
		abort();
	memcpy(create_input + 1, routes_spec_fields, n * sizeof(create_input[0]));
}

static const struct field list_input[] = { MCP_CURSOR_FIELD(NAME_LENGTH_MAX), { 0 } };
static const struct field one_input[] = { MCP_SESSION_FIELD, { 0 } };

const struct mcp_tool mcp_tools_sandboxes[] = {
	{ .name = "create_sandbox",
	  .title = "Make a sandbox",
	  .description =
		  "Make a sandbox with limits, variables, network or secrets of its own. Not needed for the usual "
		  "ones: execute_code makes its session by itself. Returns the session_id for other tools.",
	  .input = create_input,
	  .output_schema =
		  "{\"type\":\"object\",\"properties\":{\"session_id\":{\"type\":\"string\"},"
		  "\"sandbox\":{\"type\":\"object\"}},\"required\":[\"session_id\"]}",
	  .hints = TOOL_IDEMPOTENT,
	  .sets = TOOL_SET_ALL,
	  .run = create_sandbox },
	{ .name = "list_sandboxes",
	  .title = "List sandboxes",
	  .description = "List your sessions and their state.",
	  .input = list_input,
	  .output_schema =
		  "{\"type\":\"object\",\"properties\":{\"sandboxes\":{\"type\":\"array\"},"
		  "\"truncated\":{\"type\":\"boolean\"},\"next_cursor\":{\"type\":\"string\"}},"
		  "\"required\":[\"sandboxes\",\"truncated\"]}",
	  .hints = TOOL_READ_ONLY | TOOL_IDEMPOTENT,
	  .sets = TOOL_SET_ALL,
	  .run = list_sandboxes },
	{ .name = "remove_sandbox",
	  .title = "Remove a sandbox",
	  .description = "Remove a session and everything in it: variables, files, processes.",
	  .input = one_input,
	  .output_schema =
		  "{\"type\":\"object\",\"properties\":{\"removed\":{\"type\":\"boolean\"}},"
		  "\"required\":[\"removed\"]}",
	  .hints = TOOL_DESTRUCTIVE | TOOL_IDEMPOTENT,
	  .sets = TOOL_SET_ALL,
	  .run = remove_sandbox },
	{ .name = "interrupt",
	  .title = "Interrupt what runs",
	  .description =
		  "Interrupt the code that runs in a session, as Ctrl-C does. Variables are kept.",
	  .input = one_input,
	  .output_schema =
		  "{\"type\":\"object\",\"properties\":{\"interrupted\":{\"type\":\"boolean\"}},"
		  "\"required\":[\"interrupted\"]}",
	  .hints = TOOL_IDEMPOTENT,
	  .sets = TOOL_SET_DEFAULT | TOOL_SET_ALL,
	  .run = interrupt },
	{ 0 },
};
