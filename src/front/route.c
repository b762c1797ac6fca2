/* SPDX-License-Identifier: Apache-2.0 */
/* route.c - The table of routes, and the search in it. */
#include "front/route.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "front/handlers.h"

#define CODE_CHARS_MAX 1048576
#define SESSION_PATTERN "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"

bool route_session_name(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		bool alnum = (s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z') ||
			     (s[i] >= '0' && s[i] <= '9');

		if (!alnum && (i == 0 || (s[i] != '.' && s[i] != '_' && s[i] != '-')))
			return false;
	}
	return len > 0 && len <= ROUTE_SESSION_MAX;
}

/* ---- what goes in ------------------------------------------------------------------------------ */

/* Filled in by route_setup(): the limits of the timeout are configured. */
static char timeout_default[24];

static struct field execute_body[] = {
	{ .name = "code",
	  .kind = FIELD_STRING,
	  .required = true,
	  .min = 1,
	  .max = CODE_CHARS_MAX,
	  .description = "What to run. The value of a last expression becomes `result`.",
	  .example = "\"print(6 * 7)\"" },
	{ .name = "timeout",
	  .kind = FIELD_INTEGER,
	  .min = 1,
	  .max = 120,
	  .description =
		  "Seconds of wall time; then the code is interrupted, and ended if it goes on.",
	  .example = "10",
	  .fallback = "30" },
	{ .name = "session_id",
	  .kind = FIELD_STRING,
	  .min = 1,
	  .max = ROUTE_SESSION_MAX,
	  .pattern = SESSION_PATTERN,
	  .check = route_session_name,
	  .description =
		  "Keep state between calls under this name; made by its first call. Without it the "
		  "call gets a fresh sandbox, which is discarded afterwards.",
	  .example = "\"analysis-1\"" },
	{ .name = "language",
	  .kind = FIELD_STRING,
	  .min = 1,
	  .max = 32,
	  .description = "python, bash, javascript or r, where the image has the interpreter.",
	  .example = "\"python\"",
	  .fallback = "\"python\"" },
	{ .name = "stdin",
	  .kind = FIELD_STRING,
	  .description =
		  "For python: lines that answer input(). Without it input() is an error that says so.",
	  .example = "\"first line\\nsecond line\\n\"" },
	{ .name = "stream",
	  .kind = FIELD_BOOLEAN,
	  .description =
		  "Answer with Server-Sent Events while the code runs. The last one is `done`, with the "
		  "result object, or `refused`, with an error. `Accept: text/event-stream` asks for the same.",
	  .fallback = "false" },
	{ 0 },
};

static const struct field pip_body[] = {
	{ .name = "package",
	  .kind = FIELD_STRING,
	  .required = true,
	  .min = 1,
	  .max = 128,
	  .description = "Name of the package.",
	  .example = "\"requests\"" },
	{ .name = "version",
	  .kind = FIELD_STRING,
	  .min = 1,
	  .max = 64,
	  .description = "Its version.",
	  .example = "\"2.31.0\"",
	  .fallback = "\"latest\"" },
	{ 0 },
};

static const struct field no_fields[] = { { 0 } };

static const struct field session_params[] = {
	{ .name = "session_id",
	  .kind = FIELD_STRING,
	  .required = true,
	  .min = 1,
	  .max = ROUTE_SESSION_MAX,
	  .pattern = SESSION_PATTERN,
	  .check = route_session_name,
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

/* ---- what comes out ------------------------------------------------------------------------------ */

static const struct response_doc execute_out[] = {
	{ 200, "How it ended, and what it wrote. Errors of the code are results too.",
	  "ExecuteResult", NULL },
	{ 200, NULL, NULL, "text/event-stream" },
	{ 409, "The session was ended while the call waited in it.", "Error", NULL },
	{ 0 },
};
static const struct response_doc ws_out[] = {
	{ 101, "A WebSocket.", NULL, NULL },
	{ 426, "This is no WebSocket handshake.", "Error", NULL },
	{ 0 },
};
static const struct response_doc pip_out[] = {
	{ 200, "Installed, or why not.", "PipInstallResult", NULL },
	{ 403, "The package is blocked.", "Error", NULL },
	{ 501, "This daemon cannot install packages.", "Error", NULL },
	{ 0 },
};
static const struct response_doc sessions_out[] = {
	{ 200, "The caller's own sessions.", "SessionList", NULL },
	{ 0 },
};
static const struct response_doc session_end_out[] = {
	{ 204, "Ended, with everything in it.", NULL, NULL },
	{ 404, "There is no such session of yours.", "Error", NULL },
	{ 0 },
};
static const struct response_doc interrupt_out[] = {
	{ 202, "The interrupt is on its way.", NULL, NULL },
	{ 404, "There is no such session of yours, or nothing runs or waits in it.", "Error",
	  NULL },
	{ 0 },
};
static const struct response_doc health_out[] = {
	{ 200, "Able to serve.", "Health", NULL },
	{ 503, "Not able to serve: starting, draining, or broken.", "Health", NULL },
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
	{ 404, "There is no such file.", "Error", NULL },
	{ 0 },
};
static const struct response_doc root_out[] = {
	{ 307, "See /docs.", NULL, NULL },
	{ 0 },
};

/* ---- the table ---------------------------------------------------------------------------------- */

const struct route routes[] = {
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
	{ .method = "POST",
	  .path = "/pip_install",
	  .id = "pip_install",
	  .summary = "Install a Python package",
	  .description = "Names are compared with the blocked ones in their canonical form.",
	  .tag = "packages",
	  .body = pip_body,
	  .responses = pip_out,
	  .handler = handle_pip_install },
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
};
const size_t n_routes = ARRAY_SIZE(routes);

void route_setup(uint64_t timeout_ms, uint64_t max_timeout_ms)
{
	uint64_t most_s = max_timeout_ms / 1000;

	for (struct field *f = execute_body; f->name; f++) {
		if (strcmp(f->name, "timeout") != 0)
			continue;
		f->max = (double)most_s;
		(void)snprintf(timeout_default, sizeof(timeout_default), "%" PRIu64,
			       timeout_ms / 1000);
		/* A default that is not in whole seconds is no value that a request could name. */
		f->fallback = timeout_ms % 1000 == 0 && timeout_ms > 0 ? timeout_default : NULL;
	}
}

/* ---- search -------------------------------------------------------------------------------------- */

/* Whether @path has the form @pattern; @p gets the values of its parameters. */
static bool match(const char *pattern, const char *path, struct route_params *p)
{
	size_t used = 0;

	p->n = 0;
	while (*pattern && *path) {
		if (*pattern != '{') {
			if (*pattern++ != *path++)
				return false;
			continue;
		}
		size_t len = strcspn(path, "/");

		if (len == 0 || p->n == ROUTE_PARAMS_MAX || len >= sizeof(p->text) - used)
			return false;
		memcpy(p->text + used, path, len);
		p->text[used + len] = '\0';
		p->value[p->n++] = p->text + used;
		used += len + 1;
		path += len;
		pattern += strcspn(pattern, "}") + 1;
	}
	return !*pattern && !*path;
}

static void allow_method(struct buf *allow, unsigned int *seen, const char *method)
{
	static const char *const methods[] = { "GET",   "HEAD",   "POST",   "PUT",
					       "PATCH", "DELETE", "OPTIONS" };

	for (unsigned int i = 0; i < ARRAY_SIZE(methods); i++)
		if (strcmp(method, methods[i]) == 0 && !(*seen & 1u << i)) {
			(void)buf_printf(allow, "%s%s", *seen ? ", " : "", method);
			*seen |= 1u << i;
		}
}

const struct route *route_find(const char *method, const char *path, struct route_params *params,
			       int *status, struct buf *allow)
{
	const char *wanted = strcmp(method, "HEAD") == 0 ? "GET" : method;
	bool any = strcmp(path, "*") == 0;
	unsigned int seen = 0;

	*status = 404;
	for (size_t i = 0; i < n_routes; i++)
		if (strcmp(routes[i].method, wanted) == 0 && match(routes[i].path, path, params))
			return &routes[i];
	for (size_t i = 0; i < n_routes; i++) {
		if (!any && !match(routes[i].path, path, params))
			continue;
		allow_method(allow, &seen, routes[i].method);
		if (strcmp(routes[i].method, "GET") == 0)
			allow_method(allow, &seen, "HEAD");
	}
	params->n = 0;
	if (!seen)
		return NULL;
	allow_method(allow, &seen, "OPTIONS");
	*status = 405;
	return NULL;
}
