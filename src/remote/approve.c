/* SPDX-License-Identifier: Apache-2.0 */
/*
 * approve.c - `caisson approve`: tool calls of code that wait for a person.
 *
 * What the code wants to do is its own text: it is shown escaped (remote/text.h). An id may be
 * shortened as long as it is one call's alone.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "remote/list.h"
#include "remote/session.h"
#include "remote/table.h"
#include "remote/text.h"
#include "remote/verbs.h"

#define LIST_PATH "/v1/approvals"
#define ID_SHOWN 12
#define OUT_MAX (16u << 20)

static json_t *fetch(struct session *s)
{
	json_t *root = api_json(&s->api, "GET", LIST_PATH, NULL, &s->problem);

	if (!root)
		session_fail(s);
	return root;
}

/* ---- ls ------------------------------------------------------------------------------------ */

static void print_list(const json_t *list)
{
	static const struct table_column columns[] = { { "ID", false },
						       { "SANDBOX", false },
						       { "TOOL", false },
						       { "UNTIL", false },
						       { "ARGUMENTS", false } };
	_buf_ struct buf out = BUF_INIT(OUT_MAX);
	struct table t;
	size_t i;
	json_t *one;

	table_init(&t, columns, ARRAY_SIZE(columns));
	json_array_foreach(list, i, one)
	{
		table_printf(&t, "%.*s", ID_SHOWN, list_text(one, "id"));
		table_cell(&t, STYLE_PLAIN, list_text(one, "sandbox"));
		table_printf(&t, "%s.%s", list_text(one, "server"), list_text(one, "tool"));
		table_cell(&t, STYLE_DIM, list_text(one, "expires_at"));
		table_cell(&t, STYLE_PLAIN, list_text(one, "arguments"));
	}
	table_render(&t, false, 0, &out);
	(void)fwrite(buf_str(&out), 1, out.len, stdout);
	table_free(&t);
}

static void show(struct session *s)
{
	json_t *root = fetch(s);

	if (root && s->o.json)
		session_json(root);
	else if (root)
		print_list(json_object_get(root, "approvals"));
	json_decref(root);
}

/* ---- the word ------------------------------------------------------------------------------ */

/* The one whose id begins so; NULL, and said why. */
static json_t *find(struct session *s, const json_t *root, const char *id)
{
	struct err e = { 0 };
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
	if (n == 0) {
		(void)problem_say(
			&s->problem, EXIT_MISSING, "no_such_approval",
			"no call whose id begins with '%.40s' waits; 'caisson approve' lists them",
			id);
		session_fail(s);
	} else {
		(void)err_say(&e, -EINVAL, "ID: %zu calls begin with '%.40s': say more of it", n,
			      id);
		session_fail_err(s, &e);
	}
	return NULL;
}

static void decide(struct session *s, const char *id)
{
	_buf_ struct buf path = BUF_INIT(512), text = BUF_INIT(4096);
	json_t *root = fetch(s), *one = root ? find(s, root, id) : NULL, *body, *answer;

	if (!one) {
		json_decref(root);
		return;
	}
	(void)buf_printf(&path, LIST_PATH "/%.64s", list_text(one, "id"));
	body = json_pack("{s:s, s:s?}", "decision", s->o.deny ? "deny" : "approve", "reason",
			 s->o.reason);
	if (body && !s->o.reason)
		(void)json_object_del(body, "reason");
	answer = api_json(&s->api, "POST", buf_str(&path), body, &s->problem);
	if (!answer) {
		session_fail(s);
	} else if (s->o.json) {
		session_json(answer);
	} else {
		text_escape(&text, list_text(answer, "server"),
			    strlen(list_text(answer, "server")));
		(void)buf_puts(&text, ".");
		text_escape(&text, list_text(answer, "tool"), strlen(list_text(answer, "tool")));
		(void)printf("%s %s\n", s->o.deny ? "denied" : "approved", buf_str(&text));
	}
	json_decref(answer);
	json_decref(body);
	json_decref(root);
}

int verb_approve(int argc, char **argv)
{
	static const struct form form = {
		.verb = OPT_APPROVE,
		.usage = "approve [ls | ID] [--deny] [--reason TEXT]",
		.text = "Without ID: the tool calls of code in your sandboxes that wait for a person. With ID, or the beginning\n"
			"of one: say yes to it, this once, or with --deny no. Nobody's word in time is a no.\n",
		.min = 0,
		.max = 1,
	};
	struct session s;

	if (session_begin(&s, &form, argc, argv)) {
		const char *id = s.o.n_rest ? s.o.rest[0] : NULL;
		struct err e = { 0 };

		if (id && strcmp(id, "ls") != 0) {
			decide(&s, id);
		} else if (s.o.deny || s.o.reason) {
			(void)err_say(&e, -EINVAL, "--%s: say which ID",
				      s.o.deny ? "deny" : "reason");
			session_fail_err(&s, &e);
		} else {
			show(&s);
		}
	}
	return session_end(&s);
}
