/* SPDX-License-Identifier: Apache-2.0 */
/* operations_processes.c - Operations on commands, background processes, and their output. */
#include <string.h>

#include "front/cell/command_line.h"
#include "front/operations/operations.h"

#define WORD_CHARS_MAX 4096

const char *const output_streams[] = { "stdout", "stderr", NULL };

bool is_execution_id(const char *s, size_t len)
{
	return len == 32 && strspn(s, "0123456789abcdef") == len;
}

/* ---- commands ------------------------------------------------------------------------------ */

#define COMMAND_FIELDS                                                                             \
	FIELD(IN_BODY, STRING, "cmd", 1, WORD_CHARS_MAX,                                           \
	      "The program: a path in the sandbox, or a name that PATH finds there. No shell "     \
	      "reads it; `python` means python3 where there is no python.",                        \
	      .required = true, .example = "\"python\""),                                          \
		FIELD(IN_BODY, STRING_LIST, "args", 0, COMMAND_ARGS_MAX,                           \
		      "Its arguments, each as it is.", .example = "[\"-c\", \"print(6 * 7)\"]"),   \
		ENV_FIELD
#define ENV_FIELD                                                                                  \
	FIELD(IN_BODY, STRING_MAP, "env", 0, COMMAND_ENV_MAX,                                      \
	      "Variables, on top of the sandbox's own.", .example = "{\"MODE\": \"test\"}")
#define CWD_FIELD(in_)                                                                             \
	FIELD(in_, STRING, "cwd", 1, COMMAND_CWD_MAX,                                              \
	      "Working directory; relative to /workspace.", .example = "\"/workspace\"")
#define RUN_FIELDS                                                                                 \
	CWD_FIELD(IN_BODY),                                                                        \
		FIELD(IN_BODY, STRING, "stdin", 0, 0, "Its input, which ends after it.",           \
		      .nul = true, .example = "\"one line\\n\""),                                  \
		TIMEOUT_FIELD(IN_BODY),                                                            \
		FLAG_FIELD(IN_BODY, "stream", "false",                                             \
			   "Answer with events while it runs: started, stdout, stderr, then "      \
			   "`done` with the result or `refused` with an error. `Accept: "          \
			   "text/event-stream` or `application/x-ndjson` asks for the same. "      \
			   "After a cut connection go on at .../executions/{execution_id}/"        \
			   "events within a minute.")

const struct operation operation_exec = {
	.name = "sandbox_exec",
	.summary = "Run a program",
	.description = "Runs beside whatever else runs in the sandbox. When it ends, what it "
		       "started in its process group ends too, as with `&` or `nohup`; "
		       "/processes starts programs that stay.",
	.fields = FIELDS(SANDBOX_PARAM, COMMAND_FIELDS, RUN_FIELDS),
	.work = true,
	.keyed = true,
};

const struct operation operation_shell = {
	.name = "sandbox_shell",
	.summary = "Run a shell script",
	.description =
		"A fresh shell each time; nothing but files stays. Programs that the "
		"script starts with `&` or `nohup` end with it; /processes starts programs that stay.",
	.fields = FIELDS(SANDBOX_PARAM,
			 FIELD(IN_BODY, STRING, "script", 1, CODE_CHARS_MAX,
			       "For bash -c, or sh -c where there is no bash.", .required = true,
			       .example = "\"ls | wc -l\""),
			 ENV_FIELD, RUN_FIELDS),
	.work = true,
	.keyed = true,
};

/* ---- processes ----------------------------------------------------------------------------- */

#define TERMINAL_SIZE_FIELD(name_, fallback_)                                                      \
	FIELD(IN_BODY, INTEGER, name_, 1, 4096, "Of the terminal.", .fallback = (fallback_))

const struct operation operation_start_process = {
	.name = "start_process",
	.summary = "Start a process in the background",
	.description = "Its output is kept, and read by offset. It ends with its sandbox.",
	.title = "Start a program in the background",
	.tool_description =
		"Start a command that goes on while you do other things, such as a server or a "
		"long build. Read its output with process_output.",
	.fields = FIELDS(
		SANDBOX_PARAM, SESSION_FIELD, COMMAND_FIELDS,
		FIELD(IN_TOOL, STRING, "command", 1, 131072,
		      "For bash, as in: python3 -m http.server 8000", .required = true),
		CWD_FIELD(IN_BODY | IN_TOOL),
		FLAG_FIELD(IN_BODY, "stdin", "false",
			   "Keep its stdin open for what is written later; a terminal's always is."),
		FLAG_FIELD(IN_BODY, "pty", "false",
			   "Run it on a terminal: stdout and stderr are one stream then."),
		TERMINAL_SIZE_FIELD("rows", "24"), TERMINAL_SIZE_FIELD("cols", "80"),
		FIELD(IN_BODY, NUMBER, "timeout", TIMEOUT_MIN_S, YEAR_S,
		      "Seconds after which it is interrupted, and ended if it goes on; without it, "
		      "it lives as long as its sandbox.",
		      .example = "600")),
	.work = true,
	.keyed = true,
};

const struct operation operation_list_processes = {
	.name = "list_processes",
	.summary = "List processes",
	.description = "In the order in which they were started.",
	.title = "List programs in the background",
	.tool_description =
		"List those of a session, with their state. One that ended is kept for 5 minutes.",
	.fields = FIELDS(SANDBOX_PARAM, SESSION_FIELD, TOOL_CURSOR_FIELD(64)),
};

/* One process, over HTTP and as the argument of a tool. */
#define PROCESS_FIELDS                                                                             \
	PROCESS_PARAMS, SESSION_FIELD,                                                             \
		FIELD(IN_TOOL, STRING, "process_id", 1, 64, "From start_process.",                 \
		      .required = true)
/* A part of output, for a model. */
#define TOOL_PART_FIELDS                                                                           \
	FIELD(IN_TOOL, INTEGER, "offset", 0, OFFSET_MAX,                                           \
	      "Byte to begin with: next_offset of the answer before.", .fallback = "0"),           \
		FIELD(IN_TOOL, INTEGER, "limit", 1, SPOOL_PART_MAX, "Most bytes to return.",       \
		      .fallback = "16384")

const struct operation operation_process_output = {
	.name = "process_output",
	.summary = "Read what it wrote",
	.description = "By offset. The X-Output-* headers say how much there is.",
	.title = "Read what a program wrote",
	.tool_description =
		"Read output of a program in the background, from an offset; may wait for more.",
	.fields = FIELDS(PROCESS_FIELDS,
			 STREAM_FIELD(IN_QUERY | IN_TOOL, "Which one; a terminal has only stdout."),
			 FIELD(IN_QUERY, INTEGER, "offset", 0, OFFSET_MAX, "First byte wanted.",
			       .example = "4096", .fallback = "0"),
			 FIELD(IN_QUERY, INTEGER, "limit", 1, OUTPUT_LIMIT_MAX,
			       "Most bytes wanted.", .example = "65536", .fallback = "1048576"),
			 TOOL_PART_FIELDS,
			 FIELD(IN_TOOL, INTEGER, "wait_seconds", 0, PROCESS_WAIT_MAX_S,
			       "When there is nothing new yet, wait so long for it.",
			       .fallback = "0")),
};

const struct operation operation_write_stdin = {
	.name = "write_stdin",
	.summary = "Write to its stdin",
	.description = "Up to 1 MiB waits for the process to read it; more is 429.",
	.tool = "process_input",
	.title = "Write to a program",
	.tool_description = "Write to the stdin of a program in the background.",
	.fields = FIELDS(PROCESS_FIELDS,
			 FIELD(IN_BODY | IN_TOOL, STRING, "data", 0, 0, "Text for its stdin.",
			       .nul = true, .example = "\"one line\\n\""),
			 FIELD(IN_BODY, STRING, "data_base64", 0, 0,
			       "Bytes for its stdin, instead of `data`."),
			 FLAG_FIELD(IN_BODY | IN_TOOL, "close", "false",
				    "End of file after it; on a terminal Ctrl-D.")),
};

const struct operation operation_signal_process = {
	.name = "signal_process",
	.summary = "Send a signal",
	.description = "To the process and its process group.",
	.tool = "stop_process",
	.title = "Stop a program",
	.tool_description = "Send a signal to a program in the background.",
	.fields = FIELDS(PROCESS_FIELDS, FIELD(IN_BODY | IN_TOOL, STRING, "signal", 1, 16,
					       "Name or number, for its whole process group.",
					       .example = "\"INT\"", .fallback = "\"TERM\"")),
};

/* ---- executions ---------------------------------------------------------------------------- */

const struct operation operation_read_output = {
	.name = "read_output",
	.summary = "Read output by offset",
	.description =
		"Also what was too much for the answer: up to 64 MiB per stream are kept. While it "
		"runs, what there is so far.",
	.title = "Read the rest of an output",
	.tool_description =
		"Read output that a result left out because it was long (`truncated`). Kept for 15 "
		"minutes.",
	.fields = FIELDS(
		SANDBOX_PARAM, SESSION_FIELD, EXECUTION_ID_FIELD(IN_PATH),
		FIELD(IN_TOOL, STRING, "execution_id", 1, 64,
		      "From the result whose output was cut.", .required = true),
		STREAM_FIELD(IN_QUERY | IN_TOOL, "Which one."),
		FIELD(IN_QUERY, INTEGER, "offset", 0, OFFSET_MAX,
		      "Bytes to leave out at the beginning.", .example = "40000", .fallback = "0"),
		FIELD(IN_QUERY, INTEGER, "limit", 1, OUTPUT_LIMIT_MAX,
		      "Bytes of the answer at most.", .example = "65536", .fallback = "1048576"),
		TOOL_PART_FIELDS),
};
