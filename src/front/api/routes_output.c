/* SPDX-License-Identifier: Apache-2.0 */
/* routes_output.c - What was done in a sandbox lately: results, events, output. */
#include <string.h>

#include "front/api/handlers.h"
#include "front/api/routes.h"
#include "front/api/spool_reply.h"

#define OFFSET_MAX 9007199254740991 /* 2^53 - 1: what every JSON has */

/* ---- what goes in -------------------------------------------------------------------------- */

#define EXECUTION_PATTERN "^[0-9a-f]{32}$"

static bool is_execution_id(const char *s, size_t len)
{
	return len == 32 && strspn(s, "0123456789abcdef") == len;
}

static bool is_one_line(const char *s, size_t len)
{
	return len <= SPOOL_PATTERN_MAX && !memchr(s, '\n', len);
}

static const struct field sandbox_params[] = { ROUTE_SANDBOX_PARAM, { 0 } };

static const struct field execution_params[] = {
	ROUTE_SANDBOX_PARAM,
	{ .name = "execution_id",
	  .kind = FIELD_STRING,
	  .required = true,
	  .min = 1,
	  .max = 32,
	  .pattern = EXECUTION_PATTERN,
	  .check = is_execution_id,
	  .description = "As the answer or the first event named it.",
	  .example = "\"7f3c2a9e5b1d4c8f90a1b2c3d4e5f607\"" },
	{ 0 },
};

static const char *const streams[] = { "stdout", "stderr", NULL };

#define STREAM_FIELD                                                                               \
	{                                                                                          \
		.name = "stream", .kind = FIELD_STRING, .values = streams,                         \
		.description = "Which one.", .example = "\"stdout\"", .fallback = "\"stdout\""     \
	}

static const struct field events_query[] = {
	{ .name = "cursor",
	  .kind = FIELD_INTEGER,
	  .min = 0,
	  .max = 9007199254740991.0,
	  .description = "The id of the last event that was seen; those after it follow. "
			 "`Last-Event-ID` says the same.",
	  .example = "17",
	  .fallback = "0" },
	{ 0 },
};

static const struct field events_headers[] = {
	{ .name = "Last-Event-ID",
	  .kind = FIELD_STRING,
	  .description = "As `cursor`, which goes before it.",
	  .example = "\"17\"" },
	{ 0 },
};

static const struct field output_query[] = {
	STREAM_FIELD,
	{ .name = "offset",
	  .kind = FIELD_INTEGER,
	  .min = 0,
	  .max = 9007199254740991.0,
	  .description = "Bytes to leave out at the beginning.",
	  .example = "40000",
	  .fallback = "0" },
	{ .name = "limit",
	  .kind = FIELD_INTEGER,
	  .min = 1,
	  .max = OUTPUT_LIMIT_MAX,
	  .description = "Bytes of the answer at most.",
	  .example = "65536",
	  .fallback = "1048576" },
	{ 0 },
};

static const struct field search_query[] = {
	{ .name = "pattern",
	  .kind = FIELD_STRING,
	  .required = true,
	  .min = 1,
	  .max = SPOOL_PATTERN_MAX,
	  .pattern = "^[^\\n]+$",
	  .check = is_one_line,
	  .description = "A text, or with `glob` a pattern: at most 256 bytes, no line break.",
	  .example = "\"Traceback\"" },
	{ .name = "glob",
	  .kind = FIELD_BOOLEAN,
	  .description = "In `pattern`, `*` is any number of bytes of a line, `?` any one byte, "
			 "and a backslash takes what follows it as it is. It may begin and end "
			 "anywhere in a line. There are no other expressions: these take the time "
			 "of reading, whatever they are.",
	  .example = "true",
	  .fallback = "false" },
	STREAM_FIELD,
	{ .name = "offset",
	  .kind = FIELD_INTEGER,
	  .max = OFFSET_MAX,
	  .description = "Begin at this byte; `next_offset` of an answer goes on after it. Lines "
			 "are counted from the first one all the same.",
	  .example = "4096",
	  .fallback = "0" },
	{ .name = "limit",
	  .kind = FIELD_INTEGER,
	  .min = 1,
	  .max = SEARCH_LIMIT_MAX,
	  .description = "Lines of the answer at most.",
	  .example = "20",
	  .fallback = "100" },
	{ 0 },
};

/* ---- what comes out ------------------------------------------------------------------------ */

static const struct field no_fields[] = { { 0 } };

#define NOT_FOUND                                                                                  \
	{                                                                                          \
		404, "There is no such sandbox of yours, or no such execution in it.", "Error",    \
			NULL, "no_such_sandbox no_such_execution"                                  \
	}

static const struct response_doc list_out[] = {
	{ 200, "The last 32, the oldest first.", "ExecutionList", NULL },
	{ 404, "There is no such sandbox of yours.", "Error", NULL, "no_such_sandbox" },
	{ 0 },
};
static const struct response_doc execution_out[] = {
	{ 200, "What is known about it; `result` when it is over.", "Execution", NULL },
	NOT_FOUND,
	{ 0 },
};
static const struct response_doc events_out[] = {
	{ 200, "Events as they happen, and the end with the last one.", NULL, "text/event-stream" },
	{ 200, NULL, NULL, "application/x-ndjson" },
	NOT_FOUND,
	{ 422, "A parameter or a header is wrong.", "Error", NULL, "invalid_value" },
	{ 409, "It was not streamed.", "Error", NULL, "not_streamed" },
	{ 410, "Events after the cursor are not kept any more.", "Error", NULL, "cursor_gone" },
	{ 0 },
};
static const struct response_doc interrupt_out[] = {
	{ 202, "The interrupt is on its way.", NULL, NULL },
	{ 404, "There is no such sandbox of yours, or nothing of this id runs in it.", "Error",
	  NULL, "no_such_sandbox no_such_execution nothing_runs" },
	{ 0 },
};
static const struct response_doc output_out[] = {
	{ 200,
	  "The bytes. X-Output-Bytes: how many were written in all; X-Output-Kept: how many of them can be "
	  "read; X-Output-Lost: why that is less; X-Output-Complete: whether no more will come.",
	  NULL, "application/octet-stream" },
	NOT_FOUND,
	{ 0 },
};
static const struct response_doc search_out[] = {
	{ 200, "Lines that hold the text, or fit the pattern.", "OutputMatches", NULL },
	NOT_FOUND,
	{ 410, "It was forgotten while it was searched.", "Error", NULL, "execution_gone" },
	{ 0 },
};

/* ---- the table ----------------------------------------------------------------------------- */

static const struct route rows[] = {
	{ .method = "GET",
	  .path = "/v1/sandboxes/{name}/executions",
	  .id = "list_executions",
	  .summary = "List executions",
	  .description = "What runs, and what ended in the last 15 minutes; 32 at most.",
	  .tag = "executions",
	  .params = sandbox_params,
	  .responses = list_out,
	  .handler = handle_executions },
	{ .method = "GET",
	  .path = "/v1/sandboxes/{name}/executions/{execution_id}",
	  .id = "get_execution",
	  .summary = "One execution and its result",
	  .description = "The result is what was answered, or would have been.",
	  .tag = "executions",
	  .params = execution_params,
	  .responses = execution_out,
	  .handler = handle_execution },
	{ .method = "GET",
	  .path = "/v1/sandboxes/{name}/executions/{execution_id}/events",
	  .id = "resume_execution",
	  .summary = "Resume a stream",
	  .description =
		  "All events after a cursor, and then those that follow, none lost and none twice. "
		  "`Accept: application/x-ndjson` for JSON lines. Kept for 5 minutes after the end.",
	  .tag = "executions",
	  .query = events_query,
	  .headers = events_headers,
	  .params = execution_params,
	  .responses = events_out,
	  .handler = handle_execution_events },
	{ .method = "POST",
	  .path = "/v1/sandboxes/{name}/executions/{execution_id}/interrupt",
	  .id = "interrupt_execution",
	  .summary = "Interrupt one execution",
	  .description =
		  "Code or a command, as by Ctrl-C; a command that goes on is killed after a grace. No other "
		  "execution in the sandbox is touched.",
	  .tag = "executions",
	  .body = no_fields,
	  .params = execution_params,
	  .responses = interrupt_out,
	  .handler = handle_execution_interrupt },
	{ .method = "GET",
	  .path = "/v1/sandboxes/{name}/executions/{execution_id}/output",
	  .id = "read_output",
	  .summary = "Read output by offset",
	  .description =
		  "Also what was too much for the answer: up to 64 MiB per stream are kept. While it runs, "
		  "what there is so far.",
	  .tag = "executions",
	  .query = output_query,
	  .params = execution_params,
	  .responses = output_out,
	  .handler = handle_execution_output },
	{ .method = "GET",
	  .path = "/v1/sandboxes/{name}/executions/{execution_id}/search",
	  .id = "search_output",
	  .summary = "Search output",
	  .description =
		  "Lines with a text in them: their number, where the text is, and the line, of which long "
		  "ones are cut at 4 KiB.",
	  .tag = "executions",
	  .query = search_query,
	  .params = execution_params,
	  .responses = search_out,
	  .handler = handle_execution_search },
	{ 0 },
};

const struct route_table routes_output = { .rows = rows };
