/* SPDX-License-Identifier: Apache-2.0 */
/* code_spec.c - `servers`, `tools` and `project` of a spec: all checked when a sandbox is made. */
#include "front/spec/code_spec.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "front/spec/admission.h"
#include "front/spec/sandbox_spec.h"
#include "front/support/json_alloc.h"
#include "front/support/refusal.h"
#include "mcp/tool_rules.h"
#include "store/store.h"

static int refuse(struct refusal *r, const char *code, const char *field, const char *hint,
		  const char *message)
{
	return refusal_set(r, REFUSAL_INVALID, code, field, hint, "%.300s", message);
}

static int unknown(const struct admission *a, const char *name, struct refusal *r)
{
	_buf_ struct buf b = BUF_INIT(280);
	size_t i = 0;

	(void)buf_printf(&b, "there is no MCP server '%.64s'; there are: ", name);
	for (const char *known; (known = a->server_name(a->tool_calls, i)); i++)
		if (buf_printf(&b, "%s%s", i ? ", " : "", known) < 0)
			break;
	if (i == 0)
		return refuse(r, "not_supported", "servers",
			      "leave it out, or start the daemon with --mcp-config FILE",
			      "this daemon was started without MCP servers");
	return refuse(r, "unknown_server", "servers", NULL, buf_str(&b));
}

static bool is_server(const struct admission *a, const char *name)
{
	const char *known;

	for (size_t i = 0; (known = a->server_name(a->tool_calls, i)); i++)
		if (strcmp(known, name) == 0)
			return true;
	return false;
}

static int check_servers(const struct admission *a, const json_t *list, struct refusal *r)
{
	size_t i, k;
	json_t *one, *other;

	json_array_foreach(list, i, one)
	{
		if (!is_server(a, json_string_value(one)))
			return unknown(a, json_string_value(one), r);
		json_array_foreach(list, k, other)
		{
			if (k < i && json_equal(one, other))
				return refuse(r, "invalid_value", "servers", "name each once",
					      "'servers' names one of them twice");
		}
	}
	return 0;
}

static int check_project(const json_t *project, const json_t *servers, struct refusal *r)
{
	static const char good[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
	const char *text = json_string_value(project);

	if (!project)
		return 0;
	if (!text || !text[0] || strlen(text) > STORE_PROJECT_MAX || text[strspn(text, good)])
		return refuse(r, "invalid_value", "project", NULL,
			      "'project' must have 1 to 64 letters, digits, '_', '.' or '-'");
	return servers ? 0 :
			 refuse(r, "invalid_value", "project",
				"name the servers, too; [] for no servers",
				"'project' belongs to code mode, which needs 'servers'");
}

int code_spec_parse(const struct admission *a, const json_t *body, struct sandbox_spec *ret,
		    struct refusal *ret_why)
{
	json_t *servers = json_object_get(body, "servers"), *tools = json_object_get(body, "tools");
	json_t *project = json_object_get(body, "project");
	struct tool_rules rules;
	struct err e = { 0 };

	if (!servers && tools)
		return refuse(ret_why, "invalid_value", "tools", "name the servers, too",
			      "'tools' are rules for 'servers', which is missing");
	if (check_servers(a, servers, ret_why) < 0 || check_project(project, servers, ret_why) < 0)
		return -1;
	if (tool_rules_parse(tools, true, "tools", &rules, &e) < 0)
		return refuse(ret_why, "invalid_value", "tools", NULL, e.msg);
	tool_rules_free(&rules);
	ret->servers = json_incref(servers);
	ret->tools = json_incref(tools);
	ret->project = json_incref(project);
	return 0;
}

bool code_same(const json_t *a, const json_t *b)
{
	return a && b ? json_equal(a, b) : a == b;
}

void code_spec_json(const struct sandbox_spec *s, struct json *j)
{
	if (s->servers)
		json_member_value(j, "servers", s->servers);
	if (s->tools)
		json_member_value(j, "tools", s->tools);
	if (s->project)
		json_member_value(j, "project", s->project);
}
