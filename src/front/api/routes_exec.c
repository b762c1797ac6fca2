/* SPDX-License-Identifier: Apache-2.0 */
/* routes_exec.c - Commands and processes in a sandbox. */
#include "base/fd.h"
#include "front/api/handlers.h"
#include "front/api/routes.h"
#include "front/api/spool_reply.h"
#include "front/cell/command_line.h"
#include "front/sandbox/process.h"

#define SCRIPT_CHARS_MAX 1048576
#define WORD_CHARS_MAX 4096
#define OFFSET_MAX 9007199254740991 /* 2^53 - 1: what every JSON has */

/* ---- what goes in -------------------------------------------------------------------------- */

#define CMD_FIELD                                                                                  \
	{                                                                                          \
		.name = "cmd", .kind = FIELD_STRING, .required = true, .min = 1,                   \
		.max = WORD_CHARS_MAX,                                                             \
		.description = "The program: a path in the sandbox, or a name that PATH finds "    \
			       "there. No shell reads it; `python` means python3 where there is "  \
			       "no python.",                                                       \
		.example = "\"python\""                                                            \
	}
#define ARGS_FIELD                                                                                 \
	{                                                                                          \
		.name = "args", .kind = FIELD_STRING_LIST, .max = COMMAND_ARGS_MAX,                \
		.description = "Its arguments, each as it is.",                                    \
		.example = "[\"-c\", \"print(6 * 7)\"]"                                            \
	}
#define ENV_FIELD                                                                                  \
	{                                                                                          \
		.name = "env", .kind = FIELD_STRING_MAP, .max = COMMAND_ENV_MAX,                   \
		.description = "Variables, on top of the sandbox's own.",                          \
		.example = "{\"MODE\": \"test\"}"                                                  \
	}
#define CWD_FIELD                                                                                  \
	{                                                                                          \
		.name = "cwd", .kind = FIELD_STRING, .min = 1, .max = COMMAND_CWD_MAX,             \
		.description = "Working directory; relative to /workspace.",                       \
		.example = "\"/workspace\""                                                        \
	}
#define STDIN_FIELD                                                                                \
	{                                                                                          \
		.name = "stdin", .kind = FIELD_STRING, .nul = true,                                \
		.description = "What it reads from stdin, which ends after it.",                   \
		.example = "\"one line\\n\""                                                       \
	}
#define STREAM_FIELD                                                                               \
	{                                                                                          \
		.name = "stream", .kind = FIELD_BOOLEAN,                                           \
		.description = "Answer with events while it runs: started, stdout, stderr, then "  \
			       "`done` with the result or `refused` with an error. `Accept: "      \
			       "text/event-stream` or `application/x-ndjson` asks for the same. "  \
			       "After a cut connection go on at .../executions/{execution_id}/"    \
			       "events within a minute.",                                          \
		.fallback = "false"                                                                \
	}

static struct field exec_body[] = { CMD_FIELD,   ARGS_FIELD,          ENV_FIELD,    CWD_FIELD,
				    STDIN_FIELD, ROUTE_TIMEOUT_FIELD, STREAM_FIELD, { 0 } };

static struct field shell_body[] = {
	{ .name = "script",
	  .kind = FIELD_STRING,
	  .required = true,
	  .min = 1,
	  .max = SCRIPT_CHARS_MAX,
	  .description = "For bash -c, or sh -c where there is no bash.",
	  .example = "\"ls | wc -l\"" },
	ENV_FIELD,
	CWD_FIELD,
	STDIN_FIELD,
	ROUTE_TIMEOUT_FIELD,
	STREAM_FIELD,
	{ 0 },
};

static const struct field process_body[] = {
	CMD_FIELD,
	ARGS_FIELD,
	ENV_FIELD,
	CWD_FIELD,
	{ .name = "stdin",
	  .kind = FIELD_BOOLEAN,
	  .description = "Keep its stdin open for what is written later; a terminal's always is.",
	  .fallback = "false" },
	{ .name = "pty",
	  .kind = FIELD_BOOLEAN,
	  .description = "Run it on a terminal: stdout and stderr are one stream then.",
	  .fallback = "false" },
	{ .name = "rows",
	  .kind = FIELD_INTEGER,
	  .min = 1,
	  .max = 4096,
	  .description = "Of the terminal.",
	  .fallback = "24" },
	{ .name = "cols",
	  .kind = FIELD_INTEGER,
	  .min = 1,
	  .max = 4096,
	  .description = "Of the terminal.",
	  .fallback = "80" },
	{ .name = "timeout",
	  .kind = FIELD_NUMBER,
	  .min = ROUTE_TIMEOUT_MIN,
	  .max = 31536000,
	  .description = "Seconds after which it is interrupted, and ended if it goes on; "
			 "without it, it lives as long as its sandbox.",
	  .example = "600" },
	{ 0 },
};

static const struct field signal_body[] = {
	{ .name = "signal",
	  .kind = FIELD_STRING,
	  .min = 1,
	  .max = 16,
	  .description = "Name or number, for its whole process group.",
	  .example = "\"INT\"",
	  .fallback = "\"TERM\"" },
	{ 0 },
};

static const struct field stdin_body[] = {
	{ .name = "data",
	  .kind = FIELD_STRING,
	  .nul = true,
	  .description = "Text for its stdin.",
	  .example = "\"one line\\n\"" },
	{ .name = "data_base64",
	  .kind = FIELD_STRING,
	  .description = "Bytes for its stdin, instead of `data`." },
	{ .name = "close",
	  .kind = FIELD_BOOLEAN,
	  .description = "End of file after it; on a terminal Ctrl-D.",
	  .fallback = "false" },
	{ 0 },
};

static const struct field wait_body[] = {
	{ .name = "timeout",
	  .kind = FIELD_NUMBER,
	  .min = 0,
	  .max = 600,
	  .description = "Seconds; a process that still runs then is answered as it is.",
	  .example = "10",
	  .fallback = "60" },
	{ 0 },
};

static const char *const streams[] = { "stdout", "stderr", NULL };

#define WHICH_STREAM                                                                               \
	{                                                                                          \
		.name = "stream", .kind = FIELD_STRING, .values = streams,                         \
		.description = "Which one; a terminal has only stdout.", .example = "\"stderr\"",  \
		.fallback = "\"stdout\""                                                           \
	}

static const struct field output_query[] = {
	WHICH_STREAM,
	{ .name = "offset",
	  .kind = FIELD_INTEGER,
	  .max = OFFSET_MAX,
	  .description = "First byte wanted.",
	  .example = "4096",
	  .fallback = "0" },
	{ .name = "limit",
	  .kind = FIELD_INTEGER,
	  .min = 1,
	  .max = OUTPUT_LIMIT_MAX,
	  .description = "Most bytes wanted.",
	  .example = "65536",
	  .fallback = "1048576" },
	{ 0 },
};

static const struct field attach_query[] = {
	WHICH_STREAM,
	{ .name = "offset",
	  .kind = FIELD_INTEGER,
	  .max = OFFSET_MAX,
	  .description = "First byte wanted; without it all of it, and of a terminal what comes "
			 "from now on.",
	  .example = "0" },
	{ 0 },
};

static const struct field sandbox_params[] = { ROUTE_SANDBOX_PARAM, { 0 } };
static const struct field process_params[] = {
	ROUTE_SANDBOX_PARAM,
	{ .name = "process_id",
	  .kind = FIELD_STRING,
	  .required = true,
	  .description = "Of a process of this sandbox.",
	  .example = "\"6f1c0a2b4d5e4f7081920a3b4c5d6e7f\"" },
	{ 0 },
};

/* ---- what comes out ------------------------------------------------------------------------ */

#define NO_SANDBOX                                                                                 \
	{                                                                                          \
		404, "There is no such sandbox of yours.", "Error", NULL, "no_such_sandbox"        \
	}
#define NO_PROCESS                                                                                 \
	{                                                                                          \
		404, "There is no such sandbox of yours, or no such process.", "Error", NULL,      \
			"no_such_sandbox no_such_process"                                          \
	}
#define STOPPED                                                                                    \
	{                                                                                          \
		409, "The sandbox is stopped or lost.", "Error", NULL, "sandbox_stopped"           \
	}

static const struct response_doc exec_out[] = {
	{ 200, "How it ended, and what it wrote. A program that fails is a result too.",
	  "ExecResult", NULL },
	{ 200, NULL, NULL, "text/event-stream" },
	{ 200, NULL, NULL, "application/x-ndjson" },
	ROUTE_POLICY,
	NO_SANDBOX,
	STOPPED,
	{ 422, "Not what this operation takes, or a directory that is not there.", "Error", NULL,
	  "invalid_cwd unsupported_field" },
	ROUTE_TOO_MUCH("busy policy_busy"),
	{ 0 },
};
static const struct response_doc start_out[] = {
	{ 201, "It runs.", "Process", NULL },
	ROUTE_POLICY,
	NO_SANDBOX,
	STOPPED,
	{ 422, "Not what this operation takes, or nothing that can be run.", "Error", NULL,
	  "invalid_cwd cannot_start" },
	ROUTE_TOO_MUCH("busy policy_busy too_many_processes"),
	{ 0 },
};
static const struct response_doc list_out[] = {
	{ 200, "Those that run, and those that ended in the last five minutes.", "ProcessList",
	  NULL },
	NO_SANDBOX,
	{ 0 },
};
static const struct response_doc process_out[] = {
	{ 200, "The process.", "Process", NULL },
	NO_PROCESS,
	{ 0 },
};
static const struct response_doc signal_out[] = {
	{ 200, "The process.", "Process", NULL },
	NO_PROCESS,
	{ 409, "It has ended.", "Error", NULL, "not_running" },
	{ 0 },
};
static const struct response_doc stdin_out[] = {
	{ 200, "The process.", "Process", NULL },
	NO_PROCESS,
	{ 409, "It has ended, or does not read its stdin.", "Error", NULL,
	  "not_running stdin_closed" },
	ROUTE_TOO_MUCH("stdin_full"),
	{ 0 },
};
static const struct response_doc output_out[] = {
	{ 200, "Its bytes; empty at the end of what there is.", NULL, "application/octet-stream" },
	NO_PROCESS,
	{ 0 },
};
static const struct response_doc remove_out[] = {
	{ 204, "Killed, and forgotten.", NULL, NULL },
	NO_PROCESS,
	{ 0 },
};
static const struct response_doc attach_out[] = {
	{ 101, "A WebSocket.", NULL, NULL },
	NO_PROCESS,
	{ 426, "This is no WebSocket handshake.", "Error", NULL, "upgrade_required" },
	{ 0 },
};

/* ---- the table ----------------------------------------------------------------------------- */

#define PROCESSES "/v1/sandboxes/{name}/processes"

static const struct route rows[] = {
	{ .method = "POST",
	  .path = "/v1/sandboxes/{name}/exec",
	  .id = "sandbox_exec",
	  .summary = "Run a program",
	  .description = "Runs beside whatever else runs in the sandbox. When it ends, what it "
			 "started in its process group ends too.",
	  .tag = "commands",
	  .body = exec_body,
	  .params = sandbox_params,
	  .responses = exec_out,
	  .work = true,
	  .keyed = true,
	  .handler = handle_exec },
	{ .method = "POST",
	  .path = "/v1/sandboxes/{name}/shell",
	  .id = "sandbox_shell",
	  .summary = "Run a shell script",
	  .description = "A fresh shell each time; nothing but files stays.",
	  .tag = "commands",
	  .body = shell_body,
	  .params = sandbox_params,
	  .responses = exec_out,
	  .work = true,
	  .keyed = true,
	  .handler = handle_shell },
	{ .method = "POST",
	  .path = PROCESSES,
	  .id = "start_process",
	  .summary = "Start a process in the background",
	  .description = "Its output is kept, and read by offset. It ends with its sandbox.",
	  .tag = "processes",
	  .body = process_body,
	  .params = sandbox_params,
	  .responses = start_out,
	  .work = true,
	  .keyed = true,
	  .handler = handle_process_start },
	{ .method = "GET",
	  .path = PROCESSES,
	  .id = "list_processes",
	  .summary = "List processes",
	  .description = "In the order in which they were started.",
	  .tag = "processes",
	  .params = sandbox_params,
	  .responses = list_out,
	  .handler = handle_process_list },
	{ .method = "GET",
	  .path = PROCESSES "/{process_id}",
	  .id = "get_process",
	  .summary = "Ask about a process",
	  .description = "Also for five minutes after its end.",
	  .tag = "processes",
	  .params = process_params,
	  .responses = process_out,
	  .handler = handle_process_get },
	{ .method = "DELETE",
	  .path = PROCESSES "/{process_id}",
	  .id = "remove_process",
	  .summary = "Kill and forget a process",
	  .description = "Its process group is killed; its output is gone.",
	  .tag = "processes",
	  .params = process_params,
	  .responses = remove_out,
	  .handler = handle_process_remove },
	{ .method = "POST",
	  .path = PROCESSES "/{process_id}/signal",
	  .id = "signal_process",
	  .summary = "Send a signal",
	  .description = "To the process and its process group.",
	  .tag = "processes",
	  .body = signal_body,
	  .params = process_params,
	  .responses = signal_out,
	  .handler = handle_process_signal },
	{ .method = "POST",
	  .path = PROCESSES "/{process_id}/stdin",
	  .id = "write_stdin",
	  .summary = "Write to its stdin",
	  .description = "Up to 1 MiB waits for the process to read it; more is 429.",
	  .tag = "processes",
	  .body = stdin_body,
	  .params = process_params,
	  .responses = stdin_out,
	  .handler = handle_process_stdin },
	{ .method = "GET",
	  .path = PROCESSES "/{process_id}/output",
	  .id = "process_output",
	  .summary = "Read what it wrote",
	  .description = "By offset. The X-Output-* headers say how much there is.",
	  .tag = "processes",
	  .query = output_query,
	  .params = process_params,
	  .responses = output_out,
	  .handler = handle_process_output },
	{ .method = "POST",
	  .path = PROCESSES "/{process_id}/wait",
	  .id = "wait_process",
	  .summary = "Wait for its end",
	  .description = "Answers at once when it has ended.",
	  .tag = "processes",
	  .body = wait_body,
	  .params = process_params,
	  .responses = process_out,
	  .handler = handle_process_wait },
	{ .method = "GET",
	  .path = PROCESSES "/{process_id}/attach",
	  .id = "attach_process",
	  .summary = "Its input and output over a WebSocket",
	  .description =
		  "Binary messages are bytes, both ways. Text messages are JSON: in, `resize` with `rows` and "
		  "`cols`, and `eof`; out, `exit` with the members of the process, after which the socket "
		  "closes, `gap` with `bytes` that are not kept, and `error`. Several may be attached. Leaving does nothing "
		  "to the process.",
	  .tag = "processes",
	  .query = attach_query,
	  .params = process_params,
	  .responses = attach_out,
	  .handler = handle_process_attach },
	{ 0 },
};

static struct field *const timed[] = { exec_body, shell_body, NULL };

const struct route_table routes_exec = { .rows = rows, .timed = timed };
