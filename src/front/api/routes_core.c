/* SPDX-License-Identifier: Apache-2.0 */
/* routes_core.c - Routes that are older than named sandboxes: code, sessions, the daemon itself. */
#include "front/api/handlers.h"
#include "front/api/routes.h"

/* ---- what goes in -------------------------------------------------------------------------- */

static struct field execute_body[] = {
	ROUTE_CODE_FIELD("code", "What to run. The value of a last expression becomes `result`."),
	ROUTE_TIMEOUT_FIELD,
	{ .name = "session_id",
	  .kind = FIELD_STRING,
	  .min = 1,
	  .max = NAME_LENGTH_MAX,
	  .pattern = NAME_PATTERN,
	  .check = name_ok,
	  .description =
		  "Keep state between calls under this name; made by its first call. Without it the "
		  "call gets a fresh sandbox, which is discarded afterwards.",
	  .example = "\"analysis-1\"" },
	ROUTE_LANGUAGE_FIELD,
	ROUTE_STDIN_FIELD,
	{ .name = "image",
	  .kind = FIELD_STRING,
	  .min = 1,
	  .max = 512,
	  .description =
		  "What the sandbox is made from: a pulled image, or the daemon's own, which it is without this. A "
		  "session that exists has to be of this image.",
	  .example = "\"python:3.11-slim\"" },
	{ .name = "stream",
	  .kind = FIELD_BOOLEAN,
	  .description =
		  "Answer with Server-Sent Events while the code runs. The last one is `done`, with the "
		  "result object, or `refused`, with an error. `Accept: text/event-stream` asks for the same. "
		  "In a session events have ids, and the rest of a stream that was cut is at "
		  "/v1/sandboxes/{session_id}/executions/{execution_id}/events.",
	  .fallback = "false" },
	{ 0 },
};

static const struct field no_fields[] = { { 0 } };

static const struct field session_params[] = {
	{ .name = "session_id",
	  .kind = FIELD_STRING,
	  .required = true,
	  .min = 1,
	  .max = NAME_LENGTH_MAX,
	  .pattern = NAME_PATTERN,
	  .check = name_ok,
	  .description = "Name of a session of yours.",
	  .example = "\"analysis-1\"" },
	{ 0 },
};

static const struct field asset_params[] = {
	{ .name = "asset",
	  .kind = FIELD_STRING,
	  .required = true,
	  .description = "File name.",
	  .example = "\"docs.css\"" },
	{ 0 },
};

/* ---- what comes out ------------------------------------------------------------------------ */

static const struct response_doc execute_out[] = {
	{ 200, "How it ended, and what it wrote. Errors of the code are results too.",
	  "ExecuteResult", NULL },
	{ 200, NULL, NULL, "text/event-stream" },
	{ 409,
	  "The session was ended while the call waited in it, is stopped, or is of another image.",
	  "Error", NULL, "session_ended sandbox_stopped spec_conflict" },
	ROUTE_POLICY,
	{ 422, "Not what this operation takes, or a language or an image that is not here.",
	  "Error", NULL,
	  "unknown_language language_unavailable unsupported_field image_unavailable" },
	ROUTE_TOO_MUCH("busy session_busy policy_busy"),
	{ 0 },
};
static const struct response_doc ws_out[] = {
	{ 101, "A WebSocket.", NULL, NULL },
	{ 426, "This is no WebSocket handshake.", "Error", NULL, "upgrade_required" },
	{ 0 },
};
static const struct response_doc sessions_out[] = {
	{ 200, "The caller's own sessions.", "SessionList", NULL },
	{ 0 },
};
static const struct response_doc session_end_out[] = {
	{ 204, "Ended, with everything in it.", NULL, NULL },
	{ 404, "There is no such session of yours.", "Error", NULL, "no_such_session" },
	{ 0 },
};
static const struct response_doc interrupt_out[] = {
	{ 202, "The interrupt is on its way.", NULL, NULL },
	{ 404, "There is no such session of yours, or nothing runs or waits in it.", "Error", NULL,
	  "no_such_session nothing_runs" },
	{ 0 },
};
static const struct response_doc health_out[] = {
	{ 200, "Able to serve.", "Health", NULL },
	{ 503, "Not able to serve: starting, draining, or broken.", "Health", NULL },
	{ 0 },
};
static const struct response_doc policy_out[] = {
	{ 200, "The ceilings; what has none is not among them.", "Policy", NULL },
	{ 0 },
};
static const struct response_doc metrics_out[] = {
	{ 200, "Prometheus text format.", NULL, "text/plain" },
	{ 0 },
};
static const struct response_doc openapi_out[] = {
	{ 200, "This document.", "OpenApi", NULL },
	{ 0 },
};
static const struct response_doc docs_out[] = {
	{ 200, "The page.", NULL, "text/html" },
	{ 0 },
};
static const struct response_doc asset_out[] = {
	{ 200, "A style sheet.", NULL, "text/css" },
	{ 200, NULL, NULL, "text/javascript" },
	{ 200, NULL, NULL, "text/html" },
	{ 404, "There is no such file.", "Error", NULL, "not_found" },
	{ 0 },
};
static const struct response_doc root_out[] = {
	{ 307, "See /docs.", NULL, NULL },
	{ 0 },
};

/* ---- the table ----------------------------------------------------------------------------- */

static const struct route rows[] = {
	{ .method = "POST",
	  .path = "/execute",
	  .id = "execute",
	  .summary = "Run code",
	  .description =
		  "Runs code in a sealed sandbox and says how it ended. A call that waits for its turn "
		  "in a busy session is answered in order.",
	  .tag = "execution",
	  .body = execute_body,
	  .responses = execute_out,
	  .work = true,
	  .keyed = true,
	  .handler = handle_execute },
	{ .method = "GET",
	  .path = "/execute/ws",
	  .id = "execute_ws",
	  .summary = "Run code over a WebSocket",
	  .description =
		  "Messages are JSON objects with a `type`. In: `execute` with the fields of POST /execute, "
		  "`input_response` with `id` and `value`, `interrupt`. Out: `stdout`, `stderr`, `display`, "
		  "`result`, `error`, `input_request` as they happen, then `done` with `result`, or `refused` with "
		  "`error`. One execution at a time; closing the socket ends it. `interrupt` ends this socket's "
		  "execution, also when it still waits.",
	  .tag = "execution",
	  .responses = ws_out,
	  .handler = handle_execute_ws },
	{ .method = "GET",
	  .path = "/sessions",
	  .id = "list_sessions",
	  .summary = "List sessions",
	  .description = "What is alive, and whether something runs in it. Never another caller's.",
	  .tag = "sessions",
	  .responses = sessions_out,
	  .handler = handle_sessions },
	{ .method = "DELETE",
	  .path = "/sessions/{session_id}",
	  .id = "end_session",
	  .summary = "End a session",
	  .description =
		  "Ends what runs in it and forgets its name; the next call of that name starts afresh.",
	  .tag = "sessions",
	  .params = session_params,
	  .responses = session_end_out,
	  .handler = handle_session_end },
	{ .method = "POST",
	  .path = "/sessions/{session_id}/interrupt",
	  .id = "interrupt_session",
	  .summary = "Interrupt what runs in a session",
	  .description =
		  "The running code gets a KeyboardInterrupt, or its language's like. Code that still waits for its "
		  "sandbox is not run: its caller gets a result with status `signal`, cause `interrupt` and exit code "
		  "130, as from code that was interrupted in its first line. What is queued behind it is not touched.",
	  .tag = "sessions",
	  .body = no_fields,
	  .params = session_params,
	  .responses = interrupt_out,
	  .handler = handle_session_interrupt },
	{ .method = "GET",
	  .path = "/health",
	  .id = "health",
	  .summary = "Health, isolation level and pools",
	  .description = "Needs no token, so that a supervisor can ask.",
	  .tag = "service",
	  .responses = health_out,
	  .open = true,
	  .handler = handle_health },
	{ .method = "GET",
	  .path = "/v1/policy",
	  .id = "get_policy",
	  .summary = "What the operator's policy lets you have",
	  .description = "The caller's own ceilings, each with the name of its rule, and how much "
			 "of them is in use. Never another owner's.",
	  .tag = "service",
	  .responses = policy_out,
	  .handler = handle_policy },
	{ .method = "GET",
	  .path = "/metrics",
	  .id = "metrics",
	  .summary = "Metrics for Prometheus",
	  .description = "Counters, gauges and histograms in the text format 0.0.4.",
	  .tag = "service",
	  .responses = metrics_out,
	  .handler = handle_metrics },
	{ .method = "GET",
	  .path = "/openapi.json",
	  .id = "openapi",
	  .summary = "This API as OpenAPI 3.1",
	  .description = "Written from the table that also answers the requests.",
	  .tag = "service",
	  .responses = openapi_out,
	  .open = true,
	  .handler = handle_openapi },
	{ .method = "GET",
	  .path = "/docs",
	  .id = "docs",
	  .summary = "Interactive documentation",
	  .description =
		  "Everything that the page needs comes from this daemon: it works without a network.",
	  .tag = "service",
	  .responses = docs_out,
	  .open = true,
	  .handler = handle_docs },
	{ .method = "GET",
	  .path = "/docs/{asset}",
	  .id = "docs_asset",
	  .summary = "A file of the documentation",
	  .description = "Style sheets and scripts of the page.",
	  .tag = "service",
	  .params = asset_params,
	  .responses = asset_out,
	  .open = true,
	  .handler = handle_docs },
	{ .method = "GET",
	  .path = "/",
	  .id = "root",
	  .summary = "The documentation",
	  .description = "Leads to /docs.",
	  .tag = "service",
	  .responses = root_out,
	  .open = true,
	  .hidden = true,
	  .handler = handle_root },
	{ 0 },
};

static struct field *const timed[] = { execute_body, NULL };

const struct route_table routes_core = { .rows = rows, .timed = timed };
