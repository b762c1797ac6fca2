/* SPDX-License-Identifier: Apache-2.0 */
/* routes_sandboxes.c - The life of sandboxes: make, find, stop, remove; and code in them. */
#include "front/api/handlers.h"
#include "front/api/routes.h"
#include "front/spec/code_spec.h"

#define YEAR_S 31536000

/* ---- what goes in -------------------------------------------------------------------------- */

/* SandboxSpec without its name. */
#define SPEC_FIELDS                                                                                \
	{ .name = "image",                                                                         \
	  .kind = FIELD_STRING,                                                                    \
	  .min = 1,                                                                                \
	  .max = 512,                                                                              \
	  .description = "What it is made from: a pulled image, or the daemon's own.",             \
	  .example = "\"python:3.11-slim\"" },                                                     \
		{ .name = "memory_mib",                                                            \
		  .kind = FIELD_INTEGER,                                                           \
		  .min = 16,                                                                       \
		  .max = 1048576,                                                                  \
		  .description = "Memory of everything in it together.",                           \
		  .example = "512" },                                                              \
		{ .name = "cpus",                                                                  \
		  .kind = FIELD_NUMBER,                                                            \
		  .min = 0.01,                                                                     \
		  .max = 1024,                                                                     \
		  .description = "Processors, also a part of one.",                                \
		  .example = "1" },                                                                \
		{ .name = "pids",                                                                  \
		  .kind = FIELD_INTEGER,                                                           \
		  .min = 1,                                                                        \
		  .max = 32768,                                                                    \
		  .description = "Processes and threads.",                                         \
		  .example = "128" },                                                              \
		{ .name = "disk_mib",                                                              \
		  .kind = FIELD_INTEGER,                                                           \
		  .min = 1,                                                                        \
		  .max = 1048576,                                                                  \
		  .description = "Size of what can be written.",                                   \
		  .example = "1024" },                                                             \
		{ .name = "env",                                                                   \
		  .kind = FIELD_STRING_MAP,                                                        \
		  .max = 256,                                                                      \
		  .description = "Variables for everything that runs in it. Their values are "     \
				 "shown nowhere.",                                                 \
		  .example = "{\"MODE\": \"test\"}" },                                             \
		{ .name = "labels",                                                                \
		  .kind = FIELD_STRING_MAP,                                                        \
		  .max = 64,                                                                       \
		  .description = "Words of your own, to find it by.",                              \
		  .example = "{\"team\": \"red\"}" },                                              \
		{ .name = "timeout_seconds",                                                       \
		  .kind = FIELD_INTEGER,                                                           \
		  .min = 1,                                                                        \
		  .max = YEAR_S,                                                                   \
		  .description = "When it is removed whatever happens. Without it there is no "    \
				 "such time; see `extend`.",                                       \
		  .example = "3600" },                                                             \
		{ .name = "idle_seconds",                                                          \
		  .kind = FIELD_INTEGER,                                                           \
		  .min = 1,                                                                        \
		  .max = YEAR_S,                                                                   \
		  .description = "Removed after nobody used it for so long. Default: the "         \
				 "daemon's --idle-timeout.",                                       \
		  .example = "300" },                                                              \
		CODE_SPEC_FIELDS,                                                                  \
		{ .name = "workspace",                                                             \
		  .kind = FIELD_TEXT_OR_OBJECT,                                                    \
		  .max = 512,                                                                      \
		  .description =                                                                   \
			  "A workspace of yours, at /workspace: `notes`, `notes:ro`, or an "       \
			  "object with `name`, `mode` (`cow`: a copy on write, the default; "      \
			  "`ro`; `rw`), `allow` and `deny` (patterns of paths) and `write` "       \
			  "(directories that stay writable).",                                     \
		  .example = "{\"name\": \"notes\", \"deny\": [\"*.pem\"]}" },                     \
		{ .name = "mounts",                                                                \
		  .kind = FIELD_STRING_LIST,                                                       \
		  .max = 16,                                                                       \
		  .description =                                                                   \
			  "Which of the operator's mounts it has, by their places: `/data`, "      \
			  "`/data:ro`, `/data:rw`. Empty: none. Absent: all that the policy "      \
			  "lets you have.",                                                        \
		  .example = "[\"/data\", \"/models:ro\"]" },                                      \
		{ .name = "secrets",                                                               \
		  .kind = FIELD_STRING_LIST,                                                       \
		  .max = 64,                                                                       \
		  .description =                                                                   \
			  "Secrets of the operator, by name: `NAME` is a variable with its "       \
			  "value; `NAME@host` one with a placeholder, for which the value "        \
			  "is put into headers of requests to that host alone.",                   \
		  .example = "[\"OPENAI_API_KEY\"]" },                                             \
	{                                                                                          \
		.name = "egress", .kind = FIELD_STRING_LIST, .max = 256,                           \
		.description =                                                                     \
			"Hosts that it may reach, by name: `api.example.com` (ports 80 "           \
			"and 443), `git.example.net:22`, `*.example.org`. Empty or absent: "       \
			"nothing.",                                                                \
		.example = "[\"pypi.org\", \"*.example.org\"]"                                     \
	}

#define STREAM_FIELD                                                                               \
	{                                                                                          \
		.name = "stream", .kind = FIELD_BOOLEAN,                                           \
		.description = "Answer with events while it runs. `Accept: text/event-stream` or " \
			       "`application/x-ndjson` ask for the same.",                         \
		.fallback = "false"                                                                \
	}
static const struct field create_body[] = {
	{ .name = "name",
	  .kind = FIELD_STRING,
	  .required = true,
	  .min = 1,
	  .max = NAME_LENGTH_MAX,
	  .pattern = NAME_PATTERN,
	  .check = name_ok,
	  .description =
		  "What you call it. Asked for again with the same spec, it is the same one.",
	  .example = "\"build-7\"" },
	SPEC_FIELDS,
	{ 0 },
};
const struct field *const routes_spec_fields = create_body + 1;

static const struct field extend_body[] = {
	{ .name = "seconds",
	  .kind = FIELD_INTEGER,
	  .required = true,
	  .min = 1,
	  .max = YEAR_S,
	  .description = "From now on.",
	  .example = "600" },
	{ 0 },
};

static const struct field stop_body[] = {
	{ .name = "grace_seconds",
	  .kind = FIELD_INTEGER,
	  .min = 0,
	  .max = 300,
	  .description = "How long everything in it may take to end after SIGTERM.",
	  .example = "5",
	  .fallback = "5" },
	{ 0 },
};

static struct field execute_body[] = {
	ROUTE_CODE_FIELD("code", "What to run. The value of a last expression becomes `result`."),
	ROUTE_LANGUAGE_FIELD,
	ROUTE_STDIN_FIELD,
	ROUTE_TIMEOUT_FIELD,
	STREAM_FIELD,
	{ 0 },
};

static struct field run_python_body[] = {
	ROUTE_CODE_FIELD("code", "What to run."),
	ROUTE_STDIN_FIELD,
	ROUTE_TIMEOUT_FIELD,
	STREAM_FIELD,
	SPEC_FIELDS,
	{ 0 },
};

static struct field run_shell_body[] = {
	ROUTE_CODE_FIELD("script", "What bash is to run."),
	{ .name = "stdin",
	  .kind = FIELD_STRING,
	  .nul = true,
	  .description = "What the script reads from stdin, which ends after it.",
	  .example = "\"one line\\n\"" },
	ROUTE_TIMEOUT_FIELD,
	STREAM_FIELD,
	SPEC_FIELDS,
	{ 0 },
};

static const struct field no_fields[] = { { 0 } };
static const struct field name_params[] = { ROUTE_SANDBOX_PARAM, { 0 } };

static const struct field list_query[] = {
	{ .name = "label",
	  .kind = FIELD_STRING_LIST,
	  .max = 16,
	  .description = "Only those with this label, `key=value`; may be given several times." },
	{ .name = "limit",
	  .kind = FIELD_INTEGER,
	  .min = 1,
	  .max = 1000,
	  .description = "How many at most.",
	  .fallback = "100" },
	{ .name = "cursor",
	  .kind = FIELD_STRING,
	  .min = 1,
	  .max = NAME_LENGTH_MAX,
	  .description = "`next_cursor` of the page before." },
	{ 0 },
};

static const struct field logs_query[] = {
	{ .name = "tail",
	  .kind = FIELD_INTEGER,
	  .min = 0,
	  .max = 100000,
	  .description = "Only so many lines from the end." },
	{ 0 },
};

/* ---- what comes out ------------------------------------------------------------------------ */

#define NOT_YOURS                                                                                  \
	{                                                                                          \
		404, "You have no sandbox of this name.", "Error", NULL, "no_such_sandbox"         \
	}
#define BAD_SPEC                                                                                      \
	{                                                                                             \
		422, "Not what this operation takes, or more than this machine gives.", "Error",      \
			NULL,                                                                         \
			"image_unavailable not_supported out_of_range unknown_server unknown_secret " \
			"quota_unavailable"                                                           \
	}
#define IS_STOPPED                                                                                 \
	{                                                                                          \
		409, "It does not run.", "Error", NULL, "sandbox_stopped session_ended"            \
	}

static const struct response_doc create_out[] = {
	{ 201, "It was made.", "Sandbox", NULL },
	{ 200, "It exists already, with the same spec.", "Sandbox", NULL },
	ROUTE_POLICY,
	{ 404, "There is no such workspace of yours.", "Error", NULL, "no_such_workspace" },
	{ 409, "It exists with another spec, does not run any more, or its workspace is not free.",
	  "Error", NULL, "spec_conflict sandbox_stopped workspace_busy" },
	BAD_SPEC,
	ROUTE_TOO_MUCH("busy policy_busy"),
	{ 0 },
};
static const struct response_doc one_out[] = {
	{ 200, "The sandbox.", "Sandbox", NULL },
	ROUTE_POLICY,
	NOT_YOURS,
	{ 409, "It does not run.", "Error", NULL, "sandbox_stopped" },
	{ 0 },
};
static const struct response_doc get_out[] = { { 200, "The sandbox.", "Sandbox", NULL },
					       NOT_YOURS,
					       { 0 } };
static const struct response_doc list_out[] = {
	{ 200, "Your sandboxes, by name.", "SandboxList", NULL },
	{ 422, "Not what this operation takes, or a label without a value.", "Error", NULL,
	  "invalid_value" },
	{ 0 },
};
static const struct response_doc gone_out[] = { { 204, "It is gone.", NULL, NULL },
						NOT_YOURS,
						{ 0 } };
static const struct response_doc interrupt_out[] = {
	{ 202, "The code was interrupted.", NULL, NULL },
	{ 404, "There is no such sandbox, or no code runs in it.", "Error", NULL,
	  "no_such_sandbox nothing_runs" },
	{ 0 },
};
static const struct response_doc run_out[] = {
	{ 200, "How it ended, and what it wrote.", "ExecResult", NULL },
	{ 200, NULL, NULL, "text/event-stream" },
	{ 200, NULL, NULL, "application/x-ndjson" },
	ROUTE_POLICY,
	{ 404, "There is no such workspace of yours.", "Error", NULL, "no_such_workspace" },
	{ 409, "The daemon ended it, or its workspace is not free.", "Error", NULL,
	  "session_ended workspace_busy" },
	{ 422, "Not what this operation takes, or more than this machine gives.", "Error", NULL,
	  "image_unavailable not_supported unsupported_field out_of_range unknown_server unknown_secret quota_unavailable language_unavailable" },
	ROUTE_TOO_MUCH("busy policy_busy"),
	{ 0 },
};
static const struct response_doc execute_out[] = {
	{ 200, "How it ended, and what it wrote.", "ExecResult", NULL },
	{ 200, NULL, NULL, "text/event-stream" },
	{ 200, NULL, NULL, "application/x-ndjson" },
	ROUTE_POLICY,
	NOT_YOURS,
	IS_STOPPED,
	ROUTE_BAD_CODE,
	ROUTE_TOO_MUCH("session_busy policy_busy"),
	{ 0 },
};
static const struct response_doc logs_out[] = { { 200, "Text.", NULL, "text/plain" },
						NOT_YOURS,
						{ 0 } };

/* ---- the table ----------------------------------------------------------------------------- */

#define BASE "/v1/sandboxes"
#define ONE BASE "/{name}"

static const struct route rows[] = {
	{ .method = "POST",
	  .path = BASE,
	  .id = "create_sandbox",
	  .summary = "Make a sandbox",
	  .description = "Answered when its cell is ready.",
	  .tag = "sandboxes",
	  .body = create_body,
	  .responses = create_out,
	  .work = true,
	  .keyed = true,
	  .handler = handle_sandbox_create },
	{ .method = "GET",
	  .path = BASE,
	  .id = "list_sandboxes",
	  .summary = "Your sandboxes",
	  .description = "By name, a page at a time.",
	  .tag = "sandboxes",
	  .query = list_query,
	  .responses = list_out,
	  .handler = handle_sandbox_list },
	{ .method = "GET",
	  .path = ONE,
	  .id = "get_sandbox",
	  .summary = "One sandbox",
	  .description =
		  "With what it used, and its receipt: the layers that are in force, read from its processes.",
	  .tag = "sandboxes",
	  .params = name_params,
	  .responses = get_out,
	  .handler = handle_sandbox_get },
	{ .method = "DELETE",
	  .path = ONE,
	  .id = "remove_sandbox",
	  .summary = "Remove a sandbox",
	  .description = "Whatever runs in it ends, and its name is free.",
	  .tag = "sandboxes",
	  .params = name_params,
	  .responses = gone_out,
	  .handler = handle_sandbox_remove },
	{ .method = "POST",
	  .path = ONE "/extend",
	  .id = "extend_sandbox",
	  .summary = "Give it more time",
	  .description = "Sets when it is removed.",
	  .tag = "sandboxes",
	  .params = name_params,
	  .body = extend_body,
	  .responses = one_out,
	  .handler = handle_sandbox_extend },
	{ .method = "POST",
	  .path = ONE "/stop",
	  .id = "stop_sandbox",
	  .summary = "Stop it gracefully",
	  .description =
		  "SIGTERM to everything in it; its cell ends when all has ended, or after the grace. The name stays.",
	  .tag = "sandboxes",
	  .params = name_params,
	  .body = stop_body,
	  .responses = get_out,
	  .handler = handle_sandbox_stop },
	{ .method = "POST",
	  .path = ONE "/kill",
	  .id = "kill_sandbox",
	  .summary = "Stop it at once",
	  .description = "As stop without any grace.",
	  .tag = "sandboxes",
	  .params = name_params,
	  .body = no_fields,
	  .responses = get_out,
	  .handler = handle_sandbox_kill },
	{ .method = "POST",
	  .path = ONE "/interrupt",
	  .id = "interrupt_sandbox",
	  .summary = "Interrupt the code that runs in it",
	  .description = "A KeyboardInterrupt, or its language's like.",
	  .tag = "sandboxes",
	  .params = name_params,
	  .body = no_fields,
	  .responses = interrupt_out,
	  .handler = handle_sandbox_interrupt },
	{ .method = "POST",
	  .path = ONE "/execute",
	  .id = "execute_in_sandbox",
	  .summary = "Run code in a kernel of it",
	  .description = "Variables are kept. Code waits for code that was sent before it.",
	  .tag = "execution",
	  .params = name_params,
	  .body = execute_body,
	  .responses = execute_out,
	  .work = true,
	  .keyed = true,
	  .handler = handle_sandbox_execute },
	{ .method = "GET",
	  .path = ONE "/logs",
	  .id = "sandbox_logs",
	  .summary = "What was said in it lately",
	  .description =
		  "The last 64 KiB of what code and commands wrote, as bytes. X-Log-Bytes: how many there ever were.",
	  .tag = "sandboxes",
	  .params = name_params,
	  .query = logs_query,
	  .responses = logs_out,
	  .handler = handle_sandbox_logs },
	{ .method = "POST",
	  .path = "/v1/run_python",
	  .id = "run_python",
	  .summary = "Run Python in a sandbox of its own",
	  .description = "Made for it, and gone after it.",
	  .tag = "execution",
	  .body = run_python_body,
	  .responses = run_out,
	  .work = true,
	  .keyed = true,
	  .handler = handle_run_python },
	{ .method = "POST",
	  .path = "/v1/run_shell",
	  .id = "run_shell",
	  .summary = "Run a shell script in a sandbox of its own",
	  .description = "Made for it, and gone after it.",
	  .tag = "execution",
	  .body = run_shell_body,
	  .responses = run_out,
	  .work = true,
	  .keyed = true,
	  .handler = handle_run_shell },
	{ 0 },
};

static struct field *const timed[] = { execute_body, run_python_body, run_shell_body, NULL };
const struct route_table routes_sandboxes = { .rows = rows, .timed = timed };
