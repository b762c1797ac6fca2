/* SPDX-License-Identifier: Apache-2.0 */
/* handle_approvals.c - GET /v1/approvals, POST /v1/approvals/{id}. */
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "front/api/handlers.h"
#include "front/http/reply.h"
#include "front/http/serve.h"
#include "front/operations/services.h"
#include "front/tool_calls/approval.h"
#include "front/tool_calls/tool_calls.h"

#define ONE_MAX (64u << 10)
#define LIST_MAX (APPROVALS_OWNER_MAX * ONE_MAX)

void handle_approvals(struct services *services, struct http_exchange *x)
{
	struct reply answer;
	struct json *j = reply_object(&answer, LIST_MAX);

	json_member_array(j, "approvals");
	for (const struct approval *a = services->tool_calls->approvals; a; a = a->next)
		if (strcmp(a->owner, context_of(x)->owner) == 0)
			approval_json(a, j);
	json_array_end(j);
	reply_end(&answer, x, 200);
}

void handle_approval_decide(struct services *services, struct http_exchange *x)
{
	_buf_ struct buf b = BUF_INIT(ONE_MAX);
	const json_t *body = context_of(x)->fields;
	struct approval *a =
		approval_find(services->tool_calls, context_of(x)->owner, context_param(x, 0));
	const char *reason = json_string_value(json_object_get(body, "reason"));
	const char *decision = json_string_value(json_object_get(body, "decision"));
	struct json j;

	if (!a) {
		reply_error(
			x, 404, "no_such_approval", "id", "GET /v1/approvals lists them",
			"no call of this id waits for a word of yours; it may have been decided, or "
			"its time is over");
		return;
	}
	json_init(&j, &b);
	approval_json(a, &j);
	(void)json_finish(&j);
	approval_decide(a, strcmp(decision, "approve") == 0, "rest", reason ? reason : "");
	reply_json(x, 200, &b);
}
