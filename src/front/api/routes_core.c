/* SPDX-License-Identifier: Apache-2.0 */
/*
 * routes_core.c - Routes beside sandboxes: code and sessions without them, approvals, the daemon
 * itself; and the list of all tables, of every wire that speaks HTTP.
 */
#include "front/api/handlers.h"
#include "front/api/routes.h"
#include "front/tool_calls/approval.h"

const struct route *const route_tables[] = {
	routes_core,     routes_sandboxes,  routes_exec, routes_files,
	routes_output,   routes_network,    routes_mcp,  routes_jupyter,
	routes_packages, routes_workspaces, NULL,
};

static const char *const decisions[] = { "approve", "deny", NULL };

#define SESSION_PARAM                                                                              \
	FIELD(IN_PATH, STRING, "session_id", 1, NAME_LENGTH_MAX, "Name of a session of yours.",    \
	      .required = true, IS_NAME, .example = "\"analysis-1\"")

const struct route routes_core[] = {
	{ "POST", "/execute", "execution", FOR_DAEMON(handle_execute), &operation_execute,
	  RESPONSES(
		  RESPONSE(200, "ExecuteResult",
			   "How it ended, and what it wrote. Errors of the code are results too."),
		  CONTENT(200, "text/event-stream", NULL),
		  FAILURE(409, "session_ended sandbox_stopped spec_conflict",
			  "The session was ended while the call waited in it, is stopped, or is of "
			  "another image or with other servers."),
		  POLICY_OF_IMAGES,
		  FAILURE(404, "image_not_found", "There is no such image in its registry."),
		  FAILURE(422,
			  "unknown_language language_unavailable unsupported_field "
			  "image_unavailable not_supported unknown_server",
			  "Not what this operation takes, or a language, an image or a server that "
			  "is not here."),
		  TOO_MUCH("busy session_busy policy_busy image_pulls_busy"), PULL_FAILURES) },
	{ "GET", "/execute/ws", "execution", FOR_DAEMON(handle_execute_ws),
	  OPERATION(
		  "execute_ws", "Run code over a WebSocket",
		  "Messages are JSON objects with a `type`. In: `execute` with the fields of POST "
		  "/execute, `input_response` with `id` and `value`, `interrupt`. Out: `started`, "
		  "`stdout`, `stderr`, `display`, `result`, `error`, `input_request` as they "
		  "happen, then `done` with `result`, or `refused` with `error`; before them "
		  "`progress` while its image is pulled. One execution at "
		  "a time. Without a session, closing the socket ends it; in a session it goes "
		  "on. `interrupt` ends this socket's execution, also when it still waits."),
	  RESPONSES(SOCKET, NO_SOCKET) },
	{ "GET", "/sessions", "sessions", FOR_DAEMON(handle_sessions),
	  OPERATION("list_sessions", "List sessions",
		    "Your live sessions, and whether something runs in them."),
	  RESPONSES(RESPONSE(200, "SessionList", "The caller's own sessions.")) },
	{ "DELETE", "/sessions/{session_id}", "sessions", FOR_DAEMON(handle_session_end),
	  OPERATION("end_session", "End a session",
		    "Ends what runs in it and forgets its name; the next call of that name starts "
		    "afresh.",
		    FIELDS(SESSION_PARAM)),
	  RESPONSES(RESPONSE(204, NULL, "Ended, with everything in it."),
		    FAILURE(404, "no_such_session", "There is no such session of yours.")) },
	{ "POST", "/sessions/{session_id}/interrupt", "sessions",
	  FOR_DAEMON(handle_session_interrupt),
	  OPERATION("interrupt_session", "Interrupt what runs in a session",
		    "The running code gets a KeyboardInterrupt, or its language's like. Code that "
		    "still waits for its sandbox is not run: its caller gets a result with status "
		    "`signal`, cause `interrupt` and exit code 130, as from code that was "
		    "interrupted in its first line. Code that is queued behind it is not touched.",
		    FIELDS(SESSION_PARAM)),
	  RESPONSES(RESPONSE(202, NULL, "The interrupt is on its way."),
		    FAILURE(404, "no_such_session nothing_runs",
			    "There is no such session of yours, or nothing runs or waits in it.")) },
	{ "GET", "/v1/servers", "service", FOR_DAEMON(handle_servers),
	  OPERATION("list_servers", "MCP servers whose tools code may call",
		    "For `servers` of a sandbox. How many tools a server has is known once code "
		    "has used it; `note` names those that the operator's rules refuse."),
	  RESPONSES(RESPONSE(200, "ServerList", "Those of the daemon's configuration.")) },
	{ "GET", "/v1/approvals", "approvals", FOR_DAEMON(handle_approvals),
	  OPERATION("list_approvals", "Tool calls that wait for you",
		    "Code in your sandboxes has called them, and a rule says that a person has to "
		    "approve."),
	  RESPONSES(RESPONSE(200, "ApprovalList",
			     "Calls that wait for your decision, the newest first.")) },
	{ "POST", "/v1/approvals/{approval_id}", "approvals", FOR_DAEMON(handle_approval_decide),
	  OPERATION(
		  "decide_approval", "Approve or deny one",
		  "The first decision counts. A call without a decision in time "
		  "(`approve_seconds`, 60 s) is denied.",
		  FIELDS(FIELD(IN_PATH, STRING, "approval_id", 1, 64, "Of a call that waits.",
			       .required = true, .example = "\"0f9a1c5e7b3d482996d2a4c6e8f01357\""),
			 FIELD(IN_BODY, STRING, "decision", 1, 16, "The decision.",
			       .required = true, .values = decisions, .example = "\"approve\""),
			 FIELD(IN_BODY, STRING, "reason", 0, APPROVAL_REASON,
			       "Reason; the code gets it with a denial. The ledger has it either way.",
			       .example = "\"not on a Friday\""))),
	  RESPONSES(RESPONSE(200, "Approval", "The call that it was about."),
		    FAILURE(404, "no_such_approval",
			    "No call of this id waits for your decision (any more).")) },
	{ "GET", "/health", "service", FOR_DAEMON(handle_health),
	  OPERATION("health", "Health, isolation level and pools",
		    "Needs no token, so that a supervisor can ask."),
	  RESPONSES(RESPONSE(200, "Health", "Able to serve."),
		    RESPONSE(503, "Health", "Not able to serve: starting, draining, or broken.")),
	  .open = true },
	{ "GET", "/v1/policy", "service", FOR_DAEMON(handle_policy),
	  OPERATION("get_policy", "Limits of the operator's policy",
		    "The caller's own ceilings, each with the name of its rule, and how much of "
		    "them is in use. Never another owner's."),
	  RESPONSES(RESPONSE(200, "Policy", "The ceilings that there are.")) },
	{ "GET", "/metrics", "service", FOR_DAEMON(handle_metrics),
	  OPERATION("metrics", "Metrics for Prometheus",
		    "Counters, gauges and histograms in the text format 0.0.4."),
	  RESPONSES(CONTENT(200, "text/plain", "Prometheus text format.")) },
	{ "GET", "/openapi.json", "service", FOR_DAEMON(handle_openapi),
	  OPERATION("openapi", "This API as OpenAPI 3.1",
		    "Written from the table that also answers the requests."),
	  RESPONSES(RESPONSE(200, "OpenApi", "This document.")), .open = true },
	{ "GET", "/docs", "service", FOR_DAEMON(handle_docs),
	  OPERATION("docs", "Interactive documentation",
		    "Everything that the page needs comes from this daemon: it works without a "
		    "network."),
	  RESPONSES(CONTENT(200, "text/html", "The page.")), .open = true },
	{ "GET", "/docs/{asset}", "service", FOR_DAEMON(handle_docs),
	  OPERATION("docs_asset", "A file of the documentation",
		    "Style sheets and scripts of the page.",
		    FIELDS(FIELD(IN_PATH, STRING, "asset", 0, 0, "File name.", .required = true,
				 .example = "\"docs.css\""))),
	  RESPONSES(CONTENT(200, "text/css", "A style sheet."),
		    CONTENT(200, "text/javascript", NULL), CONTENT(200, "text/html", NULL),
		    FAILURE(404, "not_found", "There is no such file.")),
	  .open = true },
	{ "GET", "/", "service", FOR_DAEMON(handle_root),
	  OPERATION("root", "The documentation", "Leads to /docs."),
	  RESPONSES(RESPONSE(307, NULL, "See /docs.")), .open = true, .hidden = true },
	{ 0 },
};
