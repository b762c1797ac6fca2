/* SPDX-License-Identifier: Apache-2.0 */
/*
 * operations.h - The operations that more than one wire offers, the limits of their fields, and the
 * fields that other operations share with them.
 *
 * api/routes_*.c makes routes of them and mcp/tool_*.c tools. Where the public shapes of the two
 * wires differ, a list has a row for each: `in` of a field tells which.
 */
#ifndef CAISSON_FRONT_OPERATIONS_H
#define CAISSON_FRONT_OPERATIONS_H

#include "front/support/name.h"
#include "front/support/operation.h"

/* code.c */
extern const struct operation operation_execute; /* POST /execute, and messages of its WebSocket */
extern const struct operation operation_execute_in_sandbox, operation_run_python,
	operation_run_shell;
extern const struct operation operation_run_python_tool, operation_run_shell_tool;
extern const struct operation operation_pip_install, operation_install_packages;
/* sandboxes.c */
extern const struct operation operation_create_sandbox, operation_list_sandboxes,
	operation_remove_sandbox, operation_interrupt_sandbox;
/* files.c */
extern const struct operation operation_read_file, operation_write_file, operation_list_files;
/* processes.c */
extern const struct operation operation_exec, operation_shell, operation_start_process,
	operation_list_processes, operation_process_output, operation_write_stdin,
	operation_signal_process, operation_read_output;

/* ---- limits -------------------------------------------------------------------------------- */

#define CODE_CHARS_MAX 1048576
#define TIMEOUT_MIN_S 0.001         /* the smallest time that the clock tells from none */
#define OFFSET_MAX 9007199254740991 /* 2^53 - 1: every JSON reader holds it */
#define YEAR_S 31536000
#define OUTPUT_LIMIT_MAX (8u << 20) /* bytes of one answer, over HTTP */
#define SPOOL_PART_MAX 262144       /* bytes of one answer, to a model */
#define READ_FILE_MAX (1u << 20)    /* bytes of one answer, to a model */
#define LISTING_MAX 1000u           /* entries of one answer, to a model */
#define PROCESS_WAIT_MAX_S 60

/* ---- fields -------------------------------------------------------------------------------- */

#define IS_NAME .pattern = NAME_PATTERN, .check = name_ok

/* The first parameter of everything below /v1/sandboxes/{name}. */
#define SANDBOX_PARAM                                                                              \
	FIELD(IN_PATH, STRING, "name", 1, NAME_LENGTH_MAX, "Name of a sandbox of yours.",          \
	      .required = true, IS_NAME, .example = "\"build-7\"")
/* The same for tools. */
#define SESSION_FIELD                                                                              \
	FIELD(IN_TOOL, STRING, "session_id", 1, NAME_LENGTH_MAX,                                   \
	      "Any name of yours, as in analysis-1. Calls with the same one share variables and "  \
	      "files; it is made by its first call.",                                              \
	      .required = true, IS_NAME)

/* A process of it, over HTTP. */
#define PROCESS_PARAMS                                                                             \
	SANDBOX_PARAM, FIELD(IN_PATH, STRING, "process_id", 0, 0, "Of a process of this sandbox.", \
			     .required = true, .example = "\"6f1c0a2b4d5e4f7081920a3b4c5d6e7f\"")

#define TIMEOUT_FIELD(in_)                                                                         \
	FIELD(in_, NUMBER, "timeout", TIMEOUT_MIN_S, 120,                                          \
	      "Seconds of wall time, to the millisecond; then it is interrupted, and ended if it " \
	      "goes on.",                                                                          \
	      .example = "10", .daemon_timeout = true)
#define TOOL_CURSOR_FIELD(max_)                                                                    \
	FIELD(IN_TOOL, STRING, "cursor", 1, max_,                                                  \
	      "next_cursor of the answer before, to go on where it ended.")

/* The id of an execution, by its place. */
#define EXECUTION_ID_FIELD(in_)                                                                    \
	FIELD(in_, STRING, "execution_id", 1, 32, "As the answer or the first event named it.",    \
	      .required = true, .pattern = "^[0-9a-f]{32}$", .check = is_execution_id,             \
	      .example = "\"7f3c2a9e5b1d4c8f90a1b2c3d4e5f607\"")
bool is_execution_id(const char *s, size_t len);

extern const char *const output_streams[]; /* stdout, stderr */
#define STREAM_FIELD(in_, text_)                                                                   \
	FIELD(in_, STRING, "stream", 0, 0, text_, .values = output_streams,                        \
	      .example = "\"stderr\"", .fallback = "\"stdout\"")

/* Paths in a sandbox over HTTP. */
#define PATH_FIELD(in_, name_, text_)                                                              \
	FIELD(in_, STRING, name_, 1, FILES_PATH_MAX - 1, text_ " Relative to /workspace.",         \
	      .required = true, .bytes = true, .example = "\"out/report.csv\"")
#define PATH_CURSOR_FIELD                                                                          \
	FIELD(IN_QUERY, STRING, "cursor", 1, FILES_PATH_MAX - 1,                                   \
	      "The last name that was seen; those after it follow. See `next`.", .bytes = true,    \
	      .example = "\"out/report.csv\"")
#define DIRECTORY_FIELD                                                                            \
	FIELD(IN_QUERY, STRING, "path", 1, FILES_PATH_MAX - 1, "Relative to /workspace.",          \
	      .bytes = true, .example = "\"out\"", .fallback = "\".\"")
#define MODE_FIELD(in_)                                                                            \
	FIELD(in_, STRING, "mode", 3, 3, "Permissions, octal.", .pattern = "^[0-7]{3}$",           \
	      .check = is_mode, .example = "\"644\"")
bool is_mode(const char *s, size_t len);
#define PARENTS_FIELD(in_) FLAG_FIELD(in_, "parents", "false", "Make missing directories above it.")

#endif
