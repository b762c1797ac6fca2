/* SPDX-License-Identifier: Apache-2.0 */
/* routes_approvals.c - Calls of tools that wait for a person's word. */
#include "front/api/handlers.h"
#include "front/api/routes.h"
#include "front/tool_calls/approval.h"

static const char *const decisions[] = { "approve", "deny", NULL };

static const struct field decide_body[] = {
	{ .name = "decision",
	  .kind = FIELD_STRING,
	  .required = true,
	  .min = 1,
	  .max = 16,
	  .values = decisions,
	  .description = "The word.",
	  .example = "\"approve\"" },
	{ .name = "reason",
	  .kind = FIELD_STRING,
	  .max = APPROVAL_REASON,
	  .description = "Of a no: told to the code. In the ledger either way.",
	  .example = "\"not on a Friday\"" },
	{ 0 },
};

static const struct field approval_params[] = {
	{ .name = "approval_id",
	  .kind = FIELD_STRING,
	  .required = true,
	  .min = 1,
	  .max = 64,
	  .description = "Of a call that waits.",
	  .example = "\"0f9a1c5e7b3d482996d2a4c6e8f01357\"" },
	{ 0 },
};

static const struct response_doc list_out[] = {
	{ 200, "What waits for a word of yours, the newest first.", "ApprovalList", NULL }, { 0 }
};
static const struct response_doc decide_out[] = {
	{ 200, "The call that it was about.", "Approval", NULL },
	{ 404, "Nothing of that id waits for a word of yours (any more).", "Error", NULL,
	  "no_such_approval" },
	{ 0 },
};

static const struct route rows[] = {
	{ .method = "GET",
	  .path = "/v1/approvals",
	  .id = "list_approvals",
	  .summary = "Tool calls that wait for you",
	  .description =
		  "Code in your sandboxes has called them, and a rule says that a person has to approve.",
	  .tag = "approvals",
	  .responses = list_out,
	  .handler = handle_approvals },
	{ .method = "POST",
	  .path = "/v1/approvals/{approval_id}",
	  .id = "decide_approval",
	  .summary = "Approve or deny one",
	  .description =
		  "The first word counts. What nobody answers in time (`approve_seconds`, 60 s) is denied.",
	  .tag = "approvals",
	  .params = approval_params,
	  .body = decide_body,
	  .responses = decide_out,
	  .handler = handle_approval_decide },
	{ 0 },
};

const struct route_table routes_approvals = { .rows = rows };
