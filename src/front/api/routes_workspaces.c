/* SPDX-License-Identifier: Apache-2.0 */
/* routes_workspaces.c - Workspaces by themselves, and the changes of a sandbox to its own. */
#include "front/api/handlers.h"
#include "front/api/routes.h"

#define MIB_MAX 1048576
#define FILES_MAX 4000000

#define NAME_FIELD(in_)                                                                            \
	FIELD(in_, STRING, "name", 1, 64, "Name of a workspace of yours.", .required = true,       \
	      IS_NAME, .example = "\"notes\"")

#define NOT_YOURS FAILURE(404, "no_such_workspace", "There is no such workspace of yours.")
#define FAILED FAILURE(503, "workspace_failed", "Not now.")
#define OF_SANDBOX                                                                                 \
	FAILURE(404, "no_such_sandbox no_such_workspace",                                          \
		"There is no such sandbox of yours, or its workspace is gone."),                   \
		FAILURE(413, "workspace_full", "There is no room for it."),                        \
		FAILURE(422, "workspace_unreadable", "Something in it cannot be read."), FAILED

#define BASE "/v1/workspaces"
#define OF SANDBOX "/workspace"

const struct route routes_workspaces[] = {
	{ "POST", BASE, "workspaces", FOR_DAEMON(handle_workspace_create),
	  OPERATION("create_workspace", "Make a workspace",
		    "A directory that outlives sandboxes. Asked for again it is the same one.",
		    FIELDS(NAME_FIELD(IN_BODY),
			   FIELD(IN_BODY, INTEGER, "quota_mib", 1, MIB_MAX, "How much it may hold.",
				 .example = "512", .fallback = "1024"),
			   FIELD(IN_BODY, INTEGER, "quota_files", 1, FILES_MAX,
				 "How many files, directories and links it may hold.",
				 .example = "10000", .fallback = "100000"),
			   FIELD(IN_BODY, STRING_MAP, "labels", 0, 64, "Yours, to find it by.",
				 .example = "{\"team\": \"blue\"}"))),
	  RESPONSES(RESPONSE(201, "Workspace", "It was made."),
		    RESPONSE(200, "Workspace", "It exists already, as asked for."),
		    FAILURE(409, "workspace_exists", "It exists, and is another one."),
		    TOO_MUCH("too_many_workspaces"), FAILED) },
	{ "GET", BASE, "workspaces", FOR_DAEMON(handle_workspace_list),
	  OPERATION("list_workspaces", "Your workspaces", "By name, a page at a time.",
		    FIELDS(FIELD(IN_QUERY, STRING_LIST, "label", 0, 64,
				 "KEY=VALUE that it must have; may be repeated.",
				 .example = "[\"team=blue\"]"),
			   FIELD(IN_QUERY, INTEGER, "limit", 1, 1000, "How many at most.",
				 .example = "50", .fallback = "100"),
			   FIELD(IN_QUERY, STRING, "cursor", 1, 64,
				 "`next_cursor` of the page before.", .example = "\"notes\""))),
	  RESPONSES(RESPONSE(200, "WorkspaceList", "Your workspaces, by name.")) },
	{ "GET", BASE "/{name}", "workspaces", FOR_DAEMON(handle_workspace_get),
	  OPERATION("get_workspace", "One workspace", "With how much is in it.",
		    FIELDS(NAME_FIELD(IN_PATH))),
	  RESPONSES(RESPONSE(200, "Workspace", "The workspace."), NOT_YOURS, FAILED) },
	{ "DELETE", BASE "/{name}", "workspaces", FOR_DAEMON(handle_workspace_remove),
	  OPERATION("remove_workspace", "Remove a workspace",
		    "With everything in it. Not while sandboxes use it.",
		    FIELDS(NAME_FIELD(IN_PATH))),
	  RESPONSES(RESPONSE(204, NULL, "It is gone."), NOT_YOURS,
		    FAILURE(409, "workspace_busy", "Sandboxes use it."), FAILED) },
	{ "GET", OF "/diff", "workspaces", FOR_SANDBOX(handle_workspace_diff),
	  OPERATION("diff_workspace", "Changes of a sandbox in its workspace",
		    "Of a copy on write: paths that were added, modified, removed, or are of "
		    "another type or mode.",
		    FIELDS(SANDBOX_PARAM)),
	  RESPONSES(RESPONSE(200, "WorkspaceChanges", "The differences from its beginning."),
		    FAILURE(409,
			    "sandbox_stopped not_copy_on_write session_ended workspace_changing",
			    "It does not run, or has no copy of its own."),
		    OF_SANDBOX) },
	{ "POST", OF "/commit", "workspaces", FOR_SANDBOX(handle_workspace_commit),
	  OPERATION("commit_workspace", "Keep what a sandbox changed",
		    "As a whole or not at all. Commits of others meanwhile stay; where "
		    "both changed the same path nothing happens.",
		    FIELDS(SANDBOX_PARAM)),
	  RESPONSES(RESPONSE(200, "WorkspaceChanges", "The workspace has it now."),
		    FAILURE(409,
			    "workspace_conflict sandbox_stopped not_copy_on_write session_ended "
			    "workspace_changing",
			    "Others changed the same, or it does not run, or has no copy of its "
			    "own."),
		    OF_SANDBOX) },
	{ "POST", OF "/discard", "workspaces", FOR_SANDBOX(handle_workspace_discard),
	  OPERATION("discard_workspace", "Throw away what a sandbox changed",
		    "Its cell is replaced, with all that runs in it.", FIELDS(SANDBOX_PARAM)),
	  RESPONSES(RESPONSE(204, NULL, "It begins anew with the workspace as that is now."),
		    NO_SANDBOX,
		    FAILURE(409, "sandbox_stopped not_copy_on_write session_busy",
			    "It does not run, has no copy of its own, or code runs in it.")) },
	{ 0 },
};
