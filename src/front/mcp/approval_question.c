/* SPDX-License-Identifier: Apache-2.0 */
/*
 * approval_question.c - Approvals as questions of the protocol (elicitation), and their answers.
 *
 * A question has the approval's id; an answer to an approval that is decided already has no effect.
 */
#include "front/mcp/approval_question.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "front/mcp/call.h"
#include "front/mcp/mcp.h"
#include "front/mcp/session.h"
#include "front/mcp/suspended.h"
#include "front/mcp/task.h"
#include "front/operations/services.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/sandbox.h"
#include "front/support/json_alloc.h"
#include "front/tool_calls/approval.h"
#include "front/tool_calls/tool_calls.h"

#define BY "elicitation"

/* ---- the question -------------------------------------------------------------------------- */

static json_t *params_of(const struct approval *a)
{
	char *message = NULL;
	const char *cut = strlen(a->arguments) < a->argument_bytes ? " (cut)" : "";
	json_t *params;

	if (asprintf(
		    &message,
		    "Code in %s%s wants to call the tool %s of the MCP server %s. Its arguments%s: %s",
		    a->x->sandbox->name[0] ? "session " : "a sandbox", a->x->sandbox->name, a->tool,
		    a->server, cut, a->arguments) < 0)
		return NULL;
	params = json_pack("{s:s, s:{s:s, s:{s:{s:s,s:s,s:s}, s:{s:s,s:s,s:s,s:i}}, s:[s]}}",
			   "message", message, "requestedSchema", "type", "object", "properties",
			   "approve", "type", "boolean", "title", "Approve", "description",
			   "Whether the call may be made, this once.", "reason", "type", "string",
			   "title", "Reason", "description", "Why not; the code is told.",
			   "maxLength", (int)APPROVAL_REASON, "required", "approve");
	free(message);
	return params;
}

/* Only an accepted form with approve true approves; every other answer denies. */
static void take_answer(struct approval *a, const json_t *answer)
{
	const char *action = json_string_value(json_object_get(answer, "action"));
	const json_t *content = json_object_get(answer, "content");
	const char *reason = json_string_value(json_object_get(content, "reason"));
	bool accepts = action && strcmp(action, "accept") == 0;
	bool yes = accepts && json_is_true(json_object_get(content, "approve"));
	char text[APPROVAL_REASON * 4 + 1];

	if (!reason)
		reason = accepts ? "" : "the user declined";
	(void)snprintf(text, sizeof(text), "%.*s",
		       (int)utf8_truncate(reason, strlen(reason), APPROVAL_REASON), reason);
	approval_decide(a, yes, BY, text);
}

/* ---- a modern client, and tasks ------------------------------------------------------------ */

static json_t *questions(struct mcp_call *c)
{
	json_t *all = json_object();

	for (const struct approval *a = c->mcp->services->tool_calls->approvals; a; a = a->next)
		if (a->x == c->work)
			(void)json_object_set_new(all, a->id,
						  json_pack("{s:s,s:o?}", "method",
							    "elicitation/create", "params",
							    params_of(a)));
	return all;
}

static void answered(struct mcp_call *c, const json_t *responses)
{
	struct mcp *mcp = c->mcp;
	const struct execution *x = c->work;
	const char *id;
	json_t *answer;

	/* An answer may end the call: only @responses is read after that. */
	json_object_foreach((json_t *)responses, id, answer)
	{
		struct approval *a = mcp->services->tool_calls->approvals;

		while (a && (strcmp(a->id, id) != 0 || a->x != x))
			a = a->next;
		if (a)
			take_answer(a, answer);
	}
}

static const struct mcp_question_ops question_ops = { .questions = questions,
						      .answered = answered };

static void task_answered(struct mcp_call *c, const json_t *responses)
{
	json_t *more;

	answered(c, responses);
	more = questions(c);
	if (json_object_size(more) > 0)
		mcp_task_ask(c, more, task_answered);
	else
		json_decref(more);
}

/* ---- a legacy one -------------------------------------------------------------------------- */

struct asked {
	struct mcp_question question;
	struct approval *approval;
};

static void on_over(struct approval *a)
{
	struct asked *q = a->asked;

	mcp_unask(&q->question);
	a->asked = NULL;
	a->over = NULL;
	free(q);
}

static void on_answer(struct mcp_question *question, const json_t *result, const json_t *error)
{
	struct asked *q = question->arg;
	struct approval *a = q->approval;

	(void)error;
	if (result)
		take_answer(a, result);
	else
		on_over(a); /* this client cannot answer: other ways stay open */
}

static void ask_legacy(struct mcp_call *c, struct approval *a)
{
	_buf_ struct buf b = BUF_INIT(APPROVAL_SHOWN * 8 + 4096);
	struct asked *q = calloc(1, sizeof(*q));
	json_t *params = params_of(a);

	json_alloc_dump(&b, params);
	json_decref(params);
	if (!q || b.err) {
		free(q);
		return;
	}
	*q = (struct asked){ .question = { .answered = on_answer, .arg = q }, .approval = a };
	a->asked = q;
	a->over = on_over;
	mcp_ask(c, &q->question, "elicitation/create", &b);
}

void mcp_ask_approval(struct mcp_call *c, struct approval *a)
{
	if (!mcp_capable(c, "elicitation", NULL))
		return;
	if (c->session)
		ask_legacy(c, a);
	else if (!mcp_is_task(c))
		(void)mcp_suspend(c, &question_ops);
	else if (!mcp_task_asks(c))
		mcp_task_ask(c, questions(c), task_answered);
}
