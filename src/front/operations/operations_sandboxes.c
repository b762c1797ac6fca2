/* SPDX-License-Identifier: Apache-2.0 */
/* operations_sandboxes.c - Operations on sandboxes themselves: make, list, remove, interrupt. */
#include "front/operations/operations.h"
#include "front/operations/spec_fields.h"

const struct operation operation_create_sandbox = {
	.name = "create_sandbox",
	.summary = "Make a sandbox",
	.description =
		"Answered when its cell is ready; an image that has to be pulled comes first.",
	.tool_description =
		"Make a sandbox with limits, variables, network or secrets of its own. Not needed "
		"for the usual ones: execute_code makes its session by itself. Returns the "
		"session_id for other tools.",
	.fields = FIELDS(
		FIELD(IN_BODY, STRING, "name", 1, NAME_LENGTH_MAX,
		      "Its name. Asked for again with the same spec, it is the same one.",
		      .required = true, IS_NAME, .example = "\"build-7\""),
		FIELD(IN_TOOL, STRING, "session_id", 1, NAME_LENGTH_MAX,
		      "A name of yours; without one it gets a random one.", IS_NAME),
		FLAG_FIELD(IN_BODY, "stream", "false",
			   "Answer with events: `progress` while its image is pulled, then "
			   "`done` with the sandbox, or `refused` with an error. `Accept: "
			   "text/event-stream` or `application/x-ndjson` asks for the same."),
		SPEC_FIELDS(IN_BODY | IN_TOOL)),
	.work = true,
	.keyed = true,
};

const struct operation operation_list_sandboxes = {
	.name = "list_sandboxes",
	.summary = "Your sandboxes",
	.description = "By name, a page at a time.",
	.title = "List sandboxes",
	.tool_description = "List your sessions and their state.",
	.fields = FIELDS(
		FIELD(IN_QUERY, STRING_LIST, "label", 0, 16,
		      "Only those with this label, `key=value`; may be given several times."),
		FIELD(IN_QUERY, INTEGER, "limit", 1, 1000, "How many at most.", .fallback = "100"),
		FIELD(IN_QUERY | IN_TOOL, STRING, "cursor", 1, NAME_LENGTH_MAX,
		      "`next_cursor` of the page before.")),
};

const struct operation operation_remove_sandbox = {
	.name = "remove_sandbox",
	.summary = "Remove a sandbox",
	.description = "Whatever runs in it ends, and its name is free.",
	.tool_description = "Remove a session and everything in it: variables, files, processes.",
	.fields = FIELDS(SANDBOX_PARAM, SESSION_FIELD),
};

const struct operation operation_interrupt_sandbox = {
	.name = "interrupt_sandbox",
	.summary = "Interrupt the code that runs in it",
	.description = "A KeyboardInterrupt, or its language's like.",
	.tool = "interrupt",
	.title = "Interrupt what runs",
	.tool_description =
		"Interrupt the code that runs in a session, as Ctrl-C does. Variables are kept.",
	.fields = FIELDS(SANDBOX_PARAM, SESSION_FIELD),
};
