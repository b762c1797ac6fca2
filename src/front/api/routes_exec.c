/* SPDX-License-Identifier: Apache-2.0 */
/* routes_exec.c - Commands and processes in a sandbox. */
#include "front/api/handlers.h"
#include "front/api/routes.h"

#define NO_PROCESS                                                                                 \
	FAILURE(404, "no_such_sandbox no_such_process",                                            \
		"There is no such sandbox of yours, or no such process.")
#define STOPPED FAILURE(409, "sandbox_stopped", "The sandbox is stopped or lost.")
#define THE_PROCESS RESPONSE(200, "Process", "The process.")
#define EXEC_RESPONSES                                                                             \
	RESPONSES(RESPONSE(200, "ExecResult",                                                      \
			   "How it ended, and what it wrote. A program that fails is a result "    \
			   "too."),                                                                \
		  EVENTS, POLICY, NO_SANDBOX, STOPPED,                                             \
		  FAILURE(422, "invalid_cwd unsupported_field",                                    \
			  "Not what this operation takes, or a directory that is not there."),     \
		  TOO_MUCH("busy policy_busy"))

#define PROCESSES SANDBOX "/processes"
#define PROCESS PROCESSES "/{process_id}"

const struct route routes_exec[] = {
	{ "POST", SANDBOX "/exec", "commands", FOR_SANDBOX(handle_exec), &operation_exec,
	  EXEC_RESPONSES },
	{ "POST", SANDBOX "/shell", "commands", FOR_SANDBOX(handle_exec), &operation_shell,
	  EXEC_RESPONSES },
	{ "POST", PROCESSES, "processes", FOR_SANDBOX(handle_process_start),
	  &operation_start_process,
	  RESPONSES(RESPONSE(201, "Process", "It runs."), POLICY, NO_SANDBOX, STOPPED,
		    FAILURE(422, "invalid_cwd cannot_start",
			    "Not what this operation takes, or nothing that can be run."),
		    TOO_MUCH("busy policy_busy too_many_processes")) },
	{ "GET", PROCESSES, "processes", FOR_SANDBOX(handle_process_list),
	  &operation_list_processes,
	  RESPONSES(RESPONSE(200, "ProcessList",
			     "Those that run, and those that ended in the last five minutes."),
		    NO_SANDBOX) },
	{ "GET", PROCESS, "processes", FOR_SANDBOX(handle_process_get),
	  OPERATION("get_process", "Ask about a process", "Also for five minutes after its end.",
		    FIELDS(PROCESS_PARAMS)),
	  RESPONSES(THE_PROCESS, NO_PROCESS) },
	{ "DELETE", PROCESS, "processes", FOR_SANDBOX(handle_process_remove),
	  OPERATION("remove_process", "Kill and forget a process",
		    "Its process group is killed; its output is gone.", FIELDS(PROCESS_PARAMS)),
	  RESPONSES(RESPONSE(204, NULL, "Killed, and forgotten."), NO_PROCESS) },
	{ "POST", PROCESS "/signal", "processes", FOR_SANDBOX(handle_process_signal),
	  &operation_signal_process,
	  RESPONSES(THE_PROCESS, NO_PROCESS, FAILURE(409, "not_running", "It has ended.")) },
	{ "POST", PROCESS "/stdin", "processes", FOR_SANDBOX(handle_process_stdin),
	  &operation_write_stdin,
	  RESPONSES(THE_PROCESS, NO_PROCESS,
		    FAILURE(409, "not_running stdin_closed",
			    "It has ended, or does not read its stdin."),
		    TOO_MUCH("stdin_full")) },
	{ "GET", PROCESS "/output", "processes", FOR_SANDBOX(handle_process_output),
	  &operation_process_output,
	  RESPONSES(CONTENT(200, "application/octet-stream",
			    "Its bytes; empty at the end of what there is."),
		    NO_PROCESS) },
	{ "POST", PROCESS "/wait", "processes", FOR_SANDBOX(handle_process_wait),
	  OPERATION("wait_process", "Wait for its end", "Answers at once when it has ended.",
		    FIELDS(PROCESS_PARAMS,
			   FIELD(IN_BODY, NUMBER, "timeout", 0, 600,
				 "Seconds; a process that still runs then is answered as it is.",
				 .example = "10", .fallback = "60"))),
	  RESPONSES(THE_PROCESS, NO_PROCESS) },
	{ "GET", PROCESS "/attach", "processes", FOR_SANDBOX(handle_process_attach),
	  OPERATION(
		  "attach_process", "Its input and output over a WebSocket",
		  "Binary messages are bytes, both ways. Text messages are JSON: in, `resize` with "
		  "`rows` and `cols`, and `eof`; out, `exit` with the members of the process, "
		  "after which the socket closes, `gap` with `bytes` that are not kept, and "
		  "`error`. Several may be attached. Leaving does nothing to the process.",
		  FIELDS(PROCESS_PARAMS,
			 STREAM_FIELD(IN_QUERY, "Which one; a terminal has only stdout."),
			 FIELD(IN_QUERY, INTEGER, "offset", 0, OFFSET_MAX,
			       "First byte wanted; without it all of it, and of a terminal what "
			       "comes from now on.",
			       .example = "0"))),
	  RESPONSES(SOCKET, NO_PROCESS, NO_SOCKET) },
	{ 0 },
};
