/* SPDX-License-Identifier: Apache-2.0 */
/*
 * approve.c - `caisson approve`: tool calls of code that wait for a person.
 *
 * Names and arguments of a call are text of the code: they are shown escaped (remote/table.h). An
 * ID may be shortened as long as it identifies one call.
 */
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "remote/list.h"
#include "remote/table.h"
#include "remote/verb.h"

#define LIST_PATH "/v1/approvals"
#define ID_SHOWN 12

static void put_id(struct table *t, const json_t *call)
{
	table_printf(t, "%.*s", ID_SHOWN, list_text(call, "id"));
}

static void put_tool(struct table *t, const json_t *call)
{
	table_printf(t, "%s.%s", list_text(call, "server"), list_text(call, "tool"));
}

static int show(const struct session *s, json_t *root)
{
	static const struct list_column columns[] = {
		{ "ID", .put = put_id },
		{ "SANDBOX", .key = "sandbox" },
		{ "TOOL", .put = put_tool },
		{ "UNTIL", .key = "expires_at", .style = STYLE_DIM },
		{ "ARGUMENTS", .key = "arguments" },
	};

	return list_show(s, root, "approvals", columns, ARRAY_SIZE(columns));
}

/* The call whose ID begins with @id; NULL with s->problem. */
static json_t *find(struct session *s, const json_t *root, const char *id)
{
	json_t *found = NULL, *one;
	size_t i, n = 0;

	json_array_foreach(json_object_get(root, "approvals"), i, one)
	{
		if (strncmp(list_text(one, "id"), id, strlen(id)) != 0)
			continue;
		found = one;
		n++;
	}
	if (n == 1)
		return found;
	if (n == 0)
		(void)problem_say(
			&s->problem, EXIT_MISSING, "no_such_approval",
			"no call whose id begins with '%.40s' waits; 'caisson approve' lists them",
			id);
	else
		(void)problem_wrong(
			&s->problem,
			"ID: %zu calls begin with '%.40s': ambiguous ID; give more characters", n,
			id);
	return NULL;
}

static void print_decision(const struct session *s, const json_t *call)
{
	const char *server = list_text(call, "server"), *tool = list_text(call, "tool");

	(void)printf("%s ", s->o.deny ? "denied" : "approved");
	(void)text_print(stdout, server, strlen(server));
	(void)putchar('.');
	(void)text_print(stdout, tool, strlen(tool));
	(void)putchar('\n');
}

static int decide(struct session *s, json_t *root, const char *id)
{
	_buf_ struct buf path = BUF_INIT(512);
	const json_t *one = find(s, root, id);

	if (!one)
		return -1;
	(void)buf_printf(&path, LIST_PATH "/%.64s", list_text(one, "id"));
	json_t *body = json_pack("{s:s, s:s*}", "decision", s->o.deny ? "deny" : "approve",
				 "reason", s->o.reason);
	return session_show(s, api_json(&s->api, "POST", buf_str(&path), body, &s->problem),
			    print_decision);
}

int remote_approve(struct session *s)
{
	const char *id = s->o.n_rest && strcmp(s->o.rest[0], "ls") != 0 ? s->o.rest[0] : NULL;
	json_auto_t *root = NULL;

	if (!id && (s->o.deny || s->o.reason))
		return problem_wrong(&s->problem, "--%s: an ID is missing",
				     s->o.deny ? "deny" : "reason");
	root = api_json(&s->api, "GET", LIST_PATH, NULL, &s->problem);
	if (!id || !root)
		return show(s, json_incref(root));
	return decide(s, root, id);
}
