/* SPDX-License-Identifier: Apache-2.0 */
/* routes_sandboxes.c - The life of sandboxes: make, find, stop, remove; and code in them. */
#include "front/api/handlers.h"
#include "front/api/routes.h"

#define THE_SANDBOX RESPONSE(200, "Sandbox", "The sandbox.")
#define NOT_YOURS FAILURE(404, "no_such_sandbox", "You have no sandbox of this name.")
#define NO_WORKSPACE                                                                               \
	FAILURE(404, "no_such_workspace image_not_found",                                          \
		"There is no such workspace of yours, or no such image in its registry.")
#define BAD_SPEC(codes_)                                                                           \
	FAILURE(422,                                                                               \
		"image_unavailable not_supported out_of_range unknown_server unknown_secret "      \
		"quota_unavailable" codes_,                                                        \
		"Not what this operation takes, or more than this machine gives.")
#define RUN_RESULT RESPONSE(200, "ExecResult", "How it ended, and what it wrote."), EVENTS
#define RUN_RESPONSES                                                                              \
	RESPONSES(RUN_RESULT, POLICY_OF_IMAGES, NO_WORKSPACE,                                      \
		  FAILURE(409, "session_ended workspace_busy",                                     \
			  "The daemon ended it, or its workspace is not free."),                   \
		  BAD_SPEC(" unsupported_field language_unavailable"),                             \
		  TOO_MUCH("busy policy_busy image_pulls_busy"), PULL_FAILURES)

const struct route routes_sandboxes[] = {
	{ "POST", "/v1/sandboxes", "sandboxes", FOR_DAEMON(handle_sandbox_create),
	  &operation_create_sandbox,
	  RESPONSES(RESPONSE(201, "Sandbox", "It was made."),
		    RESPONSE(200, "Sandbox", "It exists already, with the same spec."), EVENTS,
		    POLICY_OF_IMAGES, NO_WORKSPACE,
		    FAILURE(409, "spec_conflict sandbox_stopped workspace_busy",
			    "It exists with another spec, does not run any more, or its workspace "
			    "is not free."),
		    BAD_SPEC(" unsupported_field"), TOO_MUCH("busy policy_busy image_pulls_busy"),
		    PULL_FAILURES) },
	{ "GET", "/v1/sandboxes", "sandboxes", FOR_DAEMON(handle_sandbox_list),
	  &operation_list_sandboxes,
	  RESPONSES(RESPONSE(200, "SandboxList", "Your sandboxes, by name."),
		    FAILURE(422, "invalid_value",
			    "Not what this operation takes, or a label without a value.")) },
	{ "GET", SANDBOX, "sandboxes", FOR_SANDBOX(handle_sandbox_get),
	  OPERATION("get_sandbox", "One sandbox",
		    "With what it used, and its receipt: the layers that are in force, read from "
		    "its processes.",
		    FIELDS(SANDBOX_PARAM)),
	  RESPONSES(THE_SANDBOX, NOT_YOURS) },
	{ "DELETE", SANDBOX, "sandboxes", FOR_SANDBOX(handle_sandbox_remove),
	  &operation_remove_sandbox, RESPONSES(RESPONSE(204, NULL, "It is gone."), NOT_YOURS) },
	{ "POST", SANDBOX "/extend", "sandboxes", FOR_SANDBOX(handle_sandbox_extend),
	  OPERATION("extend_sandbox", "Give it more time", "Sets when it is removed.",
		    FIELDS(SANDBOX_PARAM,
			   FIELD(IN_BODY, INTEGER, "seconds", 1, YEAR_S, "From now on.",
				 .required = true, .example = "600"))),
	  RESPONSES(THE_SANDBOX, POLICY, NOT_YOURS,
		    FAILURE(409, "sandbox_stopped", "It does not run.")) },
	{ "POST", SANDBOX "/stop", "sandboxes", FOR_SANDBOX(handle_sandbox_stop),
	  OPERATION("stop_sandbox", "Stop it gracefully",
		    "SIGTERM to everything in it; its cell ends when all has ended, or after the "
		    "grace. The name stays.",
		    FIELDS(SANDBOX_PARAM,
			   FIELD(IN_BODY, INTEGER, "grace_seconds", 0, 300,
				 "How long everything in it may take to end after SIGTERM.",
				 .example = "5", .fallback = "5"))),
	  RESPONSES(THE_SANDBOX, NOT_YOURS) },
	{ "POST", SANDBOX "/kill", "sandboxes", FOR_SANDBOX(handle_sandbox_kill),
	  OPERATION("kill_sandbox", "Stop it at once", "As stop without any grace.",
		    FIELDS(SANDBOX_PARAM)),
	  RESPONSES(THE_SANDBOX, NOT_YOURS) },
	{ "POST", SANDBOX "/interrupt", "sandboxes", FOR_SANDBOX(handle_sandbox_interrupt),
	  &operation_interrupt_sandbox,
	  RESPONSES(RESPONSE(202, NULL, "The code was interrupted."),
		    FAILURE(404, "no_such_sandbox nothing_runs",
			    "There is no such sandbox, or no code runs in it.")) },
	{ "POST", SANDBOX "/execute", "execution", FOR_SANDBOX(handle_sandbox_execute),
	  &operation_execute_in_sandbox,
	  RESPONSES(RUN_RESULT, POLICY, NOT_YOURS,
		    FAILURE(409, "sandbox_stopped session_ended", "It does not run."), BAD_CODE,
		    TOO_MUCH("session_busy policy_busy")) },
	{ "GET", SANDBOX "/logs", "sandboxes", FOR_SANDBOX(handle_sandbox_logs),
	  OPERATION("sandbox_logs", "Recent output of everything in it",
		    "The last 64 KiB of what code and commands wrote, as bytes. X-Log-Bytes: how "
		    "many there ever were.",
		    FIELDS(SANDBOX_PARAM, FIELD(IN_QUERY, INTEGER, "tail", 0, 100000,
						"Only so many lines from the end."))),
	  RESPONSES(CONTENT(200, "text/plain", "Text."), NOT_YOURS) },
	{ "POST", "/v1/run_python", "execution", FOR_DAEMON(handle_run_python),
	  &operation_run_python, RUN_RESPONSES },
	{ "POST", "/v1/run_shell", "execution", FOR_DAEMON(handle_run_shell), &operation_run_shell,
	  RUN_RESPONSES },
	{ 0 },
};
