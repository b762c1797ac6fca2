/* SPDX-License-Identifier: Apache-2.0 */
/* routes_output.c - Recent executions in a sandbox: results, events, output. */
#include <string.h>

#include "front/api/handlers.h"
#include "front/api/routes.h"
#include "front/api/spool_reply.h"

static bool is_one_line(const char *s, size_t len)
{
	return len <= SPOOL_PATTERN_MAX && !memchr(s, '\n', len);
}

#define NOT_FOUND                                                                                  \
	FAILURE(404, "no_such_sandbox no_such_execution",                                          \
		"There is no such sandbox of yours, or no such execution in it.")
#define EXECUTION_PARAMS SANDBOX_PARAM, EXECUTION_ID_FIELD(IN_PATH)

#define EXECUTIONS SANDBOX "/executions"
#define EXECUTION EXECUTIONS "/{execution_id}"

const struct route routes_output[] = {
	{ "GET", EXECUTIONS, "executions", FOR_SANDBOX(handle_executions),
	  OPERATION("list_executions", "List executions",
		    "Those that run, and those that ended in the last 15 minutes; 32 at most.",
		    FIELDS(SANDBOX_PARAM)),
	  RESPONSES(RESPONSE(200, "ExecutionList", "The last 32, the oldest first."), NO_SANDBOX) },
	{ "GET", EXECUTION, "executions", FOR_SANDBOX(handle_execution),
	  OPERATION("get_execution", "One execution and its result",
		    "The result is what was answered, or would have been.",
		    FIELDS(EXECUTION_PARAMS)),
	  RESPONSES(RESPONSE(200, "Execution", "The execution; with `result` when it is over."),
		    NOT_FOUND) },
	{ "GET", EXECUTION "/events", "executions", FOR_SANDBOX(handle_execution_events),
	  OPERATION("resume_execution", "Resume a stream",
		    "All events after a cursor, and then those that follow, none lost and none "
		    "twice. `Accept: application/x-ndjson` for JSON lines. Kept for 5 minutes "
		    "after the end.",
		    FIELDS(EXECUTION_PARAMS,
			   FIELD(IN_QUERY, INTEGER, "cursor", 0, OFFSET_MAX,
				 "The id of the last event that was seen; those after it follow. "
				 "`Last-Event-ID` says the same.",
				 .example = "17", .fallback = "0"))),
	  RESPONSES(CONTENT(200, "text/event-stream",
			    "Events as they happen, and the end with the last one."),
		    CONTENT(200, "application/x-ndjson", NULL), NOT_FOUND,
		    FAILURE(422, "invalid_value", "A parameter or a header is wrong."),
		    FAILURE(409, "not_streamed", "It was not streamed."),
		    FAILURE(410, "cursor_gone", "Events after the cursor are not kept any more."),
		    TOO_MUCH("too_many_readers")),
	  .headers = FIELDS(FIELD(0, STRING, "Last-Event-ID", 0, 0,
				  "As `cursor`, which goes before it.", .example = "\"17\"")) },
	{ "POST", EXECUTION "/interrupt", "executions", FOR_SANDBOX(handle_execution_interrupt),
	  OPERATION("interrupt_execution", "Interrupt one execution",
		    "Code or a command, as by Ctrl-C; a command that goes on is killed after a "
		    "grace. No other execution in the sandbox is touched.",
		    FIELDS(EXECUTION_PARAMS)),
	  RESPONSES(
		  RESPONSE(202, NULL, "The interrupt is on its way."),
		  FAILURE(404, "no_such_sandbox no_such_execution nothing_runs",
			  "There is no such sandbox of yours, or nothing of this id runs in it.")) },
	{ "GET", EXECUTION "/output", "executions", FOR_SANDBOX(handle_execution_output),
	  &operation_read_output,
	  RESPONSES(CONTENT(200, "application/octet-stream",
			    "The bytes. X-Output-Bytes: how many were written in all; "
			    "X-Output-Kept: how many of them can be read; X-Output-Lost: why that "
			    "is less; X-Output-Complete: whether no more will come."),
		    NOT_FOUND) },
	{ "GET", EXECUTION "/search", "executions", FOR_SANDBOX(handle_execution_search),
	  OPERATION("search_output", "Search output",
		    "Lines with a text in them: their number, where the text is, and the line, of "
		    "which long ones are cut at 4 KiB.",
		    FIELDS(EXECUTION_PARAMS,
			   FIELD(IN_QUERY, STRING, "pattern", 1, SPOOL_PATTERN_MAX,
				 "A text, or with `glob` a pattern: at most 256 bytes, no line "
				 "break.",
				 .required = true, .pattern = "^[^\\n]+$", .check = is_one_line,
				 .example = "\"Traceback\""),
			   FLAG_FIELD(IN_QUERY, "glob", "false",
				      "In `pattern`, `*` is any number of bytes of a line, `?` any "
				      "one byte, and a backslash takes what follows it as it is. It "
				      "may begin and end anywhere in a line. There are no other "
				      "expressions: these take the time of reading, whatever they "
				      "are.",
				      .example = "true"),
			   STREAM_FIELD(IN_QUERY, "Which one."),
			   FIELD(IN_QUERY, INTEGER, "offset", 0, OFFSET_MAX,
				 "Begin at this byte; `next_offset` of an answer goes on after it. "
				 "Lines are counted from the first one all the same.",
				 .example = "4096", .fallback = "0"),
			   FIELD(IN_QUERY, INTEGER, "limit", 1, SEARCH_LIMIT_MAX,
				 "Lines of the answer at most.", .example = "20",
				 .fallback = "100"))),
	  RESPONSES(RESPONSE(200, "OutputMatches", "Lines that hold the text, or fit the pattern."),
		    NOT_FOUND,
		    FAILURE(410, "execution_gone", "It was forgotten while it was searched.")) },
	{ 0 },
};
