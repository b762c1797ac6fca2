/* SPDX-License-Identifier: Apache-2.0 */
/* routes_workspaces.c - Workspaces by themselves, and what a sandbox changed in its own. */
#include "front/api/handlers.h"
#include "front/api/routes.h"

#define MIB_MAX 1048576
#define FILES_MAX 4000000

#define NAME_FIELD                                                                                 \
	{                                                                                          \
		.name = "name", .kind = FIELD_STRING, .required = true, .min = 1, .max = 64,       \
		.pattern = NAME_PATTERN, .check = name_ok,                                         \
		.description = "Name of a workspace of yours.", .example = "\"notes\""             \
	}

static const struct field create_body[] = {
	NAME_FIELD,
	{ .name = "quota_mib",
	  .kind = FIELD_INTEGER,
	  .min = 1,
	  .max = MIB_MAX,
	  .description = "How much it may hold.",
	  .example = "512",
	  .fallback = "1024" },
	{ .name = "quota_files",
	  .kind = FIELD_INTEGER,
	  .min = 1,
	  .max = FILES_MAX,
	  .description = "How many files, directories and links it may hold.",
	  .example = "10000",
	  .fallback = "100000" },
	{ .name = "labels",
	  .kind = FIELD_STRING_MAP,
	  .max = 64,
	  .description = "Yours, to find it by.",
	  .example = "{\"team\": \"blue\"}" },
	{ 0 },
};
static const struct field name_params[] = { NAME_FIELD, { 0 } };
static const struct field sandbox_params[] = { ROUTE_SANDBOX_PARAM, { 0 } };
static const struct field list_query[] = {
	{ .name = "label",
	  .kind = FIELD_STRING_LIST,
	  .max = 64,
	  .description = "KEY=VALUE that it must have; may be repeated.",
	  .example = "[\"team=blue\"]" },
	{ .name = "limit",
	  .kind = FIELD_INTEGER,
	  .min = 1,
	  .max = 1000,
	  .description = "How many at most.",
	  .example = "50",
	  .fallback = "100" },
	{ .name = "cursor",
	  .kind = FIELD_STRING,
	  .min = 1,
	  .max = 64,
	  .description = "`next_cursor` of the page before.",
	  .example = "\"notes\"" },
	{ 0 },
};
static const struct field no_fields[] = { { 0 } };

#define NOT_YOURS                                                                                  \
	{                                                                                          \
		404, "There is no such workspace of yours.", "Error", NULL, "no_such_workspace"    \
	}
#define FAILED                                                                                     \
	{                                                                                          \
		503, "Not now.", "Error", NULL, "workspace_failed"                                 \
	}

static const struct response_doc create_out[] = {
	{ 201, "It was made.", "Workspace", NULL },
	{ 200, "It exists already, as asked for.", "Workspace", NULL },
	{ 409, "It exists, and is another one.", "Error", NULL, "workspace_exists" },
	ROUTE_TOO_MUCH("too_many_workspaces"),
	FAILED,
	{ 0 },
};
static const struct response_doc list_out[] = {
	{ 200, "Your workspaces, by name.", "WorkspaceList", NULL }, { 0 }
};
static const struct response_doc get_out[] = {
	{ 200, "The workspace.", "Workspace", NULL }, NOT_YOURS, FAILED, { 0 }
};
static const struct response_doc gone_out[] = {
	{ 204, "It is gone.", NULL, NULL },
	NOT_YOURS,
	{ 409, "Sandboxes use it.", "Error", NULL, "workspace_busy" },
	FAILED,
	{ 0 },
};
#define OF_SANDBOX                                                                                 \
	{ 404, "There is no such sandbox of yours, or its workspace is gone.", "Error", NULL,      \
	  "no_such_sandbox no_such_workspace" },                                                   \
		{ 413, "There is no room for it.", "Error", NULL, "workspace_full" },              \
		{ 422, "Something in it can not be read.", "Error", NULL,                          \
		  "workspace_unreadable" },                                                        \
	{                                                                                          \
		503, "Not now.", "Error", NULL, "workspace_failed"                                 \
	}

static const struct response_doc diff_out[] = {
	{ 200, "What differs from what it began with.", "WorkspaceChanges", NULL },
	{ 409, "It does not run, or has no copy of its own.", "Error", NULL,
	  "sandbox_stopped not_copy_on_write session_ended workspace_changing" },
	OF_SANDBOX,
	{ 0 },
};
static const struct response_doc commit_out[] = {
	{ 200, "The workspace has it now.", "WorkspaceChanges", NULL },
	{ 409, "Others changed the same, or it does not run, or has no copy of its own.", "Error",
	  NULL,
	  "workspace_conflict sandbox_stopped not_copy_on_write session_ended workspace_changing" },
	OF_SANDBOX,
	{ 0 },
};
static const struct response_doc discard_out[] = {
	{ 204, "It begins anew with the workspace as that is now.", NULL, NULL },
	{ 404, "There is no such sandbox of yours.", "Error", NULL, "no_such_sandbox" },
	{ 409, "It does not run, has no copy of its own, or code runs in it.", "Error", NULL,
	  "sandbox_stopped not_copy_on_write session_busy" },
	{ 0 },
};

#define BASE "/v1/workspaces"
#define OF "/v1/sandboxes/{name}/workspace"

static const struct route rows[] = {
	{ .method = "POST",
	  .path = BASE,
	  .id = "create_workspace",
	  .summary = "Make a workspace",
	  .description = "A directory that outlives sandboxes. Asked for again it is the same one.",
	  .tag = "workspaces",
	  .body = create_body,
	  .responses = create_out,
	  .handler = handle_workspace_create },
	{ .method = "GET",
	  .path = BASE,
	  .id = "list_workspaces",
	  .summary = "Your workspaces",
	  .description = "By name, a page at a time.",
	  .tag = "workspaces",
	  .query = list_query,
	  .responses = list_out,
	  .handler = handle_workspace_list },
	{ .method = "GET",
	  .path = BASE "/{name}",
	  .id = "get_workspace",
	  .summary = "One workspace",
	  .description = "With how much is in it.",
	  .tag = "workspaces",
	  .params = name_params,
	  .responses = get_out,
	  .handler = handle_workspace_get },
	{ .method = "DELETE",
	  .path = BASE "/{name}",
	  .id = "remove_workspace",
	  .summary = "Remove a workspace",
	  .description = "With everything in it. Not while sandboxes use it.",
	  .tag = "workspaces",
	  .params = name_params,
	  .responses = gone_out,
	  .handler = handle_workspace_remove },
	{ .method = "GET",
	  .path = OF "/diff",
	  .id = "diff_workspace",
	  .summary = "What a sandbox changed in its workspace",
	  .description = "Of a copy on write: paths that were added, modified, removed, or are of "
			 "another type or mode.",
	  .tag = "workspaces",
	  .params = sandbox_params,
	  .responses = diff_out,
	  .handler = handle_workspace_diff },
	{ .method = "POST",
	  .path = OF "/commit",
	  .id = "commit_workspace",
	  .summary = "Keep what a sandbox changed",
	  .description = "As a whole or not at all. What others have committed meanwhile stays; "
			 "where both changed the same path nothing happens.",
	  .tag = "workspaces",
	  .params = sandbox_params,
	  .body = no_fields,
	  .responses = commit_out,
	  .handler = handle_workspace_commit },
	{ .method = "POST",
	  .path = OF "/discard",
	  .id = "discard_workspace",
	  .summary = "Throw away what a sandbox changed",
	  .description = "Its cell is replaced, with all that runs in it.",
	  .tag = "workspaces",
	  .params = sandbox_params,
	  .body = no_fields,
	  .responses = discard_out,
	  .handler = handle_workspace_discard },
	{ 0 },
};

const struct route_table routes_workspaces = { .rows = rows };
