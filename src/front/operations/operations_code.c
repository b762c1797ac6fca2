/* SPDX-License-Identifier: Apache-2.0 */
/* operations_code.c - Operations that run code, and that install packages for it. */
#include "front/operations/operations.h"
#include "front/operations/spec_fields.h"
#include "front/packages/install.h"

/* ---- code ---------------------------------------------------------------------------------- */

#define CODE_FIELD(in_, name_, text_, ...)                                                         \
	FIELD(in_, STRING, name_, 1, CODE_CHARS_MAX, text_, .required = true,                      \
	      .example = "\"print(6 * 7)\"", __VA_ARGS__)
#define LANGUAGE_FIELD(in_)                                                                        \
	FIELD(in_, STRING, "language", 1, 32,                                                      \
	      "python, bash, javascript or r, where the image has the interpreter.",               \
	      .example = "\"python\"", .fallback = "\"python\"")
#define STDIN_FIELD                                                                                \
	FIELD(IN_BODY, STRING, "stdin", 0, 0,                                                      \
	      "For python: lines that answer input(). Without it input() is an error that says "   \
	      "so.",                                                                               \
	      .example = "\"first line\\nsecond line\\n\"")
#define EVENTS_FIELD                                                                               \
	FLAG_FIELD(IN_BODY, "stream", "false",                                                     \
		   "Answer with events while it runs. `Accept: text/event-stream` or "             \
		   "`application/x-ndjson` ask for the same.")

const struct operation operation_execute = {
	.name = "execute",
	.summary = "Run code",
	.description =
		"Runs code in a sealed sandbox and says how it ended. A call that waits for its "
		"turn in a busy session is answered in order.",
	.fields = FIELDS(
		CODE_FIELD(IN_BODY, "code",
			   "Code to run. The value of a last expression becomes `result`."),
		TIMEOUT_FIELD(IN_BODY),
		FIELD(IN_BODY, STRING, "session_id", 1, NAME_LENGTH_MAX,
		      "Keep state between calls under this name; made by its first call. Without "
		      "it the call gets a fresh sandbox, which is discarded afterwards.",
		      IS_NAME, .example = "\"analysis-1\""),
		LANGUAGE_FIELD(IN_BODY), STDIN_FIELD,
		FIELD(IN_BODY, STRING, "image", 1, 512,
		      "Image of the sandbox: a pulled one, or the daemon's own, which is the "
		      "default. A session that exists has to be of this image.",
		      .example = "\"python:3.11-slim\""),
		SERVERS_FIELD(IN_BODY),
		FLAG_FIELD(IN_BODY, "stream", "false",
			   "Answer with Server-Sent Events while the code runs. The last one is "
			   "`done`, with the result object, or `refused`, with an error. `Accept: "
			   "text/event-stream` or `application/x-ndjson` asks for the same. In a "
			   "session the code goes on when the stream is cut, and the rest of it is "
			   "at /v1/sandboxes/{session_id}/executions/{execution_id}/events.")),
	.work = true,
	.keyed = true,
};

const struct operation operation_execute_in_sandbox = {
	.name = "execute_in_sandbox",
	.summary = "Run code in a kernel of it",
	.description = "Variables are kept. Code waits for code that was sent before it.",
	.tool = "execute_code",
	.title = "Run code in a session",
	.tool_description =
		"Run code in a sealed sandbox and keep its state: variables, imports and files "
		"below /workspace are there in the next call with the same session_id. Returns "
		"output, the value of a last expression, and images that were shown (matplotlib "
		"works). No network.",
	.fields =
		FIELDS(SANDBOX_PARAM, SESSION_FIELD,
		       CODE_FIELD(IN_BODY | IN_TOOL, "code",
				  "Code to run. The value of a last expression becomes `result`."),
		       LANGUAGE_FIELD(IN_BODY | IN_TOOL), STDIN_FIELD,
		       TIMEOUT_FIELD(IN_BODY | IN_TOOL), EVENTS_FIELD),
	.work = true,
	.keyed = true,
};

const struct operation operation_run_python = {
	.name = "run_python",
	.summary = "Run Python in a sandbox of its own",
	.description = "Made for it, and gone after it.",
	.tool = "execute_python",
	.title = "Run Python once",
	.tool_description =
		"Run Python in a fresh sealed sandbox that is discarded afterwards: nothing is "
		"kept. For several steps that build on each other use execute_code. No network.",
	.fields = FIELDS(
		CODE_FIELD(IN_BODY | IN_TOOL, "code", "Code to run.",
			   .tool_description = "Python to run in a fresh sandbox. The value of a "
					       "last expression becomes `result`."),
		STDIN_FIELD, TIMEOUT_FIELD(IN_BODY | IN_TOOL), EVENTS_FIELD, SPEC_FIELDS(IN_BODY)),
	.work = true,
	.keyed = true,
};

const struct operation operation_run_python_tool = {
	.name = "run_python",
	.summary = "Run Python that calls tools",
	.description =
		"Run Python in a fresh sealed sandbox that is discarded afterwards. Tools of the "
		"MCP servers that `servers` names can be called from it: `await "
		"mcp_github.get_issue(number=7)`; `import mcp.runtime` has list_tools, "
		"search_tool_docs, save_memory and more. Only what the code prints comes back.",
	.fields = FIELDS(
		CODE_FIELD(IN_TOOL, "code",
			   "Python to run in a fresh sandbox; await works at its top level."),
		SERVERS_FIELD(IN_TOOL), TIMEOUT_FIELD(IN_TOOL)),
};

const struct operation operation_run_shell = {
	.name = "run_shell",
	.summary = "Run a shell script in a sandbox of its own",
	.description = "Made for it, and gone after it.",
	.fields = FIELDS(CODE_FIELD(IN_BODY, "script", "Script for bash."),
			 FIELD(IN_BODY, STRING, "stdin", 0, 0,
			       "Input of the script, which ends after it.", .nul = true,
			       .example = "\"one line\\n\""),
			 TIMEOUT_FIELD(IN_BODY), EVENTS_FIELD, SPEC_FIELDS(IN_BODY)),
	.work = true,
	.keyed = true,
};

const struct operation operation_run_shell_tool = {
	.name = "run_shell",
	.summary = "Run a shell command",
	.description =
		"Run a command in bash, in a session. The shell stays: its directory and variables "
		"are there in the next call. Works on the same files as execute_code. No network.",
	.fields = FIELDS(SESSION_FIELD,
			 FIELD(IN_TOOL, STRING, "command", 1, CODE_CHARS_MAX,
			       "For bash; several lines are fine.", .required = true),
			 TIMEOUT_FIELD(IN_TOOL)),
};

/* ---- packages ------------------------------------------------------------------------------ */

#define PROGRESS_FIELD                                                                             \
	FLAG_FIELD(IN_BODY, "stream", "false",                                                     \
		   "Answer with events while it goes on: progress, then `done` with the result "   \
		   "or `refused` with an error. `Accept: text/event-stream` or "                   \
		   "`application/x-ndjson` asks for the same.")
#define TOOL_VERSION_FIELD                                                                         \
	FIELD(IN_TOOL, STRING, "version", 1, 64,                                                   \
	      "As in 2.31.0; the image's or the newest when it is left out.")

#define UPGRADE_FIELD                                                                              \
	FLAG_FIELD(IN_BODY | IN_TOOL, "upgrade", "false",                                          \
		   "Install the newest version, also if the image has one that would do.")

const struct operation operation_pip_install = {
	.name = "pip_install",
	.summary = "Install a Python package",
	.description =
		"Resolves, downloads and, if need be, builds it in a cell of its own, checks every "
		"package that comes with it, and makes them importable at once.",
	.tool_description =
		"Install a Python package and what it needs. It can be imported at once, also in "
		"code that already ran in the session.",
	.fields = FIELDS(
		FIELD(IN_BODY | IN_TOOL, STRING, "package", 1, 128,
		      "Its name on the index, with optional versions: requests, numpy>=1.26,<2.",
		      .required = true, .example = "\"requests\""),
		FIELD(IN_BODY, STRING, "version", 1, 64, "Its version.", .example = "\"2.31.0\"",
		      .fallback = "\"latest\""),
		TOOL_VERSION_FIELD,
		FIELD(IN_BODY | IN_TOOL, STRING, "session_id", 1, NAME_LENGTH_MAX,
		      "For this session alone; without it, for all sandboxes of the caller that "
		      "have the daemon's own image.",
		      IS_NAME, .example = "\"analysis-1\"",
		      .tool_description = "For this session alone. Without it: for all of yours of "
					  "the daemon's own image, now and later."),
		UPGRADE_FIELD, PROGRESS_FIELD),
};

const struct operation operation_install_packages = {
	.name = "install_packages",
	.summary = "Install packages into a sandbox",
	.description = "Python or npm packages, for code and commands of this sandbox.",
	.tool = "install_package",
	.title = "Install a package into a session",
	.tool_description =
		"Install a Python or npm package, and what it needs, into a session. It can be "
		"imported (or required) at once.",
	.fields = FIELDS(
		SANDBOX_PARAM, SESSION_FIELD,
		FIELD(IN_BODY, STRING_LIST, "packages", 1, INSTALL_REQUIREMENTS_MAX,
		      "Names on the index, with optional versions.", .required = true,
		      .example = "[\"requests\", \"numpy>=1.26\"]"),
		FIELD(IN_TOOL, STRING, "package_name", 1, 128,
		      "Name on the index, as in requests, or left-pad for javascript.",
		      .required = true),
		TOOL_VERSION_FIELD,
		FIELD(IN_BODY | IN_TOOL, STRING, "language", 1, 32,
		      "python (from the python index) or javascript (from the npm registry).",
		      .example = "\"python\"", .fallback = "\"python\""),
		UPGRADE_FIELD, PROGRESS_FIELD),
};
