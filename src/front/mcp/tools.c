/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tools.c - tools/list and tools/call: the tools that this daemon offers, and calls of them.
 *
 * Which tools there are, --tools decides for the daemon and the policy for an owner. A call is
 * checked before the tool runs: its headers, the answers to questions of an earlier round, and its
 * arguments.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "front/mcp/call.h"
#include "front/mcp/input_request.h"
#include "front/mcp/mcp.h"
#include "front/mcp/suspended.h"
#include "front/mcp/task.h"
#include "front/mcp/tool.h"
#include "front/mcp/tool_image.h"
#include "front/operations/services.h"
#include "front/packages/packages.h"
#include "front/policy/policy.h"
#include "front/spec/judge.h"
#include "front/support/log.h"
#include "front/support/schema.h"
#include "front/tool_calls/tool_calls.h"
#include "front/tool_calls/upstream.h"
#include "mcp/message.h"

#define LIST_TTL_MS (300u * 1000u)

static const struct mcp_tool *const tables[] = {
	mcp_tools_code,      mcp_tools_run_python, mcp_tools_files,    mcp_tools_output,
	mcp_tools_processes, mcp_tools_sandboxes,  mcp_tools_packages,
};

/* ---- which ones ---------------------------------------------------------------------------- */

static const char *name_of(const struct mcp_tool *t)
{
	return t->op->tool ? t->op->tool : t->op->name;
}

/* Whether @name is a word of the list @words, "a,b,c". */
static bool listed(const char *words, const char *name)
{
	size_t len = strlen(name);

	for (const char *p = words; *p; p += strcspn(p, ",")) {
		p += strspn(p, ", ");
		if (strncmp(p, name, len) == 0 && (p[len] == ',' || p[len] == '\0'))
			return true;
	}
	return false;
}

static bool offered(const struct mcp *mcp, const struct mcp_tool *t)
{
	const char *tools = mcp->daemon->config.tools;
	bool by_default =
		t->offer == TOOL_ALWAYS ||
		(t->offer == TOOL_WITH_PACKAGES && packages_on(mcp->services->packages)) ||
		(t->offer == TOOL_WITH_SERVERS && mcp->services->tool_calls->upstreams.n > 0);

	return (by_default && listed(tools, "default")) || listed(tools, "all") ||
	       listed(tools, name_of(t));
}

/* The i-th tool that this daemon offers, NULL after the last. */
static const struct mcp_tool *tool_at(const struct mcp *mcp, size_t i)
{
	for (size_t n = 0; n < ARRAY_SIZE(tables); n++)
		for (const struct mcp_tool *t = tables[n]; t->op; t++)
			if (offered(mcp, t) && i-- == 0)
				return t;
	for (const struct mcp_tool *const *table = mcp_additions.tools; table && *table; table++)
		for (const struct mcp_tool *t = *table; t->op; t++)
			if (i-- == 0)
				return t;
	return NULL;
}

const struct mcp_tool *mcp_tool_find(const struct mcp *mcp, const char *name)
{
	const struct mcp_tool *t;

	for (size_t i = 0; (t = tool_at(mcp, i)); i++)
		if (strcmp(name_of(t), name) == 0)
			return t;
	return NULL;
}

uint64_t mcp_tools_hash(const struct mcp *mcp, const char *owner)
{
	uint64_t h = UINT64_C(14695981039346656037); /* FNV-1a */
	const struct mcp_tool *t;

	for (size_t i = 0; (t = tool_at(mcp, i)); i++)
		for (const char *p = policy_tool(mcp->sandboxes->admission, owner, name_of(t)) ?
					     name_of(t) :
					     "";
		     *p; p++)
			h = (h ^ (unsigned char)*p) * UINT64_C(1099511628211);
	return h;
}

bool mcp_tools_check(const char *list, char *unknown, size_t size)
{
	for (const char *p = list; *p; p += strcspn(p, ",")) {
		p += strspn(p, ", ");
		size_t len = strcspn(p, ",");
		bool known = len == 0 || (len == 7 && strncmp(p, "default", len) == 0) ||
			     (len == 3 && strncmp(p, "all", len) == 0);

		for (size_t n = 0; !known && n < ARRAY_SIZE(tables); n++)
			for (const struct mcp_tool *t = tables[n]; t->op && !known; t++)
				known = strlen(name_of(t)) == len &&
					strncmp(name_of(t), p, len) == 0;
		if (!known) {
			(void)snprintf(unknown, size, "%.*s", (int)len, p);
			return false;
		}
	}
	return true;
}

int mcp_tools_option(const char *v, struct err *e)
{
	char unknown[64];

	if (mcp_tools_check(v, unknown, sizeof(unknown)))
		return 0;
	return err_say(e, -EINVAL, "there is no tool '%.60s'; give default, all, or names of tools",
		       unknown);
}

/* ---- tools/list ---------------------------------------------------------------------------- */

static void write_hints(struct json *j, const struct mcp_tool *t, const char *title)
{
	json_member_object(j, "annotations");
	json_member_str(j, "title", title);
	json_member_bool(j, "readOnlyHint", t->hints & TOOL_READ_ONLY);
	json_member_bool(j, "destructiveHint", t->hints & TOOL_DESTRUCTIVE);
	json_member_bool(j, "idempotentHint", t->hints & TOOL_IDEMPOTENT);
	json_member_bool(j, "openWorldHint", t->hints & TOOL_OPEN_WORLD);
	json_object_end(j);
}

static void write_tool(struct json *j, const struct mcp_tool *t)
{
	const struct operation *op = t->op;
	const char *title = op->title ? op->title : op->summary;

	json_object_begin(j);
	json_member_str(j, "name", name_of(t));
	json_member_str(j, "title", title);
	json_member_str(j, "description",
			op->tool_description ? op->tool_description : op->description);
	json_key(j, "inputSchema");
	if (t->input_schema)
		json_raw(j, t->input_schema, strlen(t->input_schema));
	else
		fields_write(j, op->fields, IN_TOOL);
	if (t->output_schema)
		json_member_raw(j, "outputSchema", t->output_schema);
	write_hints(j, t, title);
	json_object_end(j);
}

void mcp_method_tools_list(struct mcp_call *c)
{
	const struct mcp_tool *t;
	struct mcp_answer a;
	struct mcp_page page;

	if (!mcp_page_begin(c, &page))
		return;
	mcp_answer_begin(c, &a);
	json_member_array(&a.j, "tools");
	for (size_t i = 0; (t = tool_at(c->mcp, i)); i++)
		if (policy_tool(c->mcp->sandboxes->admission, c->owner, name_of(t)) &&
		    mcp_page_takes(&page))
			write_tool(&a.j, t);
	json_array_end(&a.j);
	mcp_page_end(&page, &a.j);
	/* Owners may differ. */
	mcp_answer_cache(c, &a, LIST_TTL_MS, !c->mcp->sandboxes->admission->policy->rules);
	mcp_answer_end(c, &a);
}

/* ---- tools/call ---------------------------------------------------------------------------- */

/* Whether the headers repeat the arguments as they should. False: answered. */
static bool mirrored(struct mcp_call *c, const struct mcp_tool *t, const json_t *args)
{
	if (c->era != MCP_MODERN || !c->line->header)
		return true;
	for (const struct mcp_mirror *m = t->mirrors; m && m->arg; m++) {
		const char *header = c->line->header(c, m->header);

		if (mcp_header_mirrors(header, json_object_get(args, m->arg)))
			continue;
		mcp_fail_data(c, 400, MCP_BAD_HEADER, NULL, "header %s %s params.arguments.%s",
			      m->header, header ? "is not" : "is missing: it repeats", m->arg);
		return false;
	}
	return true;
}

uint64_t mcp_arg_number(const json_t *args, const char *name, uint64_t fallback)
{
	const json_t *v = json_object_get(args, name);

	return v ? (uint64_t)json_integer_value(v) : fallback;
}

void mcp_method_tools_call(struct mcp_call *c)
{
	const char *name = json_string_value(json_object_get(c->m.params, "name"));
	json_t *args = json_object_get(c->m.params, "arguments");
	const struct mcp_tool *t = name ? mcp_tool_find(c->mcp, name) : NULL;
	struct schema_error e;
	struct refusal why;

	if (!t) {
		mcp_fail(c, MCP_INVALID_PARAMS,
			 name ? "there is no tool %.100s; see tools/list" :
				"params.name is missing",
			 name);
		return;
	}
	if (policy_tool_call(c->mcp->sandboxes->admission, c->owner, name, &why) < 0) {
		mcp_output_refuse(c, &why);
		return;
	}
	if (!args || json_is_null(args)) {
		args = json_object();
		(void)json_object_set_new(c->m.params, "arguments", args);
	}
	if (!json_is_object(args)) {
		mcp_fail(c, MCP_INVALID_PARAMS, "params.arguments must be an object");
		return;
	}
	if (!mirrored(c, t, args) || !mcp_inputs_check(c))
		return;
	if (!t->input_schema && !schema_check(args, t->op->fields, IN_TOOL, &e)) {
		mcp_output_fail(c, e.code, e.hint, "%s%s%s", e.field, e.field[0] ? ": " : "",
				e.message);
		return;
	}
	log_event(LOG_LEVEL_DEBUG, "mcp_tool", F_STR("owner", c->owner), F_STR("tool", name));
	if (t->task)
		mcp_task_later(c);
	if (!mcp_suspended_resume(c) && mcp_tool_ready(c, t, args))
		t->run(c, args);
}
