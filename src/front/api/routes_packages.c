/* SPDX-License-Identifier: Apache-2.0 */
/* routes_packages.c - Packages: for all of a caller's sandboxes, and for one. */
#include "front/api/handlers.h"
#include "front/api/routes.h"
#include "front/packages/install.h"

#define STREAM_FIELD                                                                               \
	{                                                                                          \
		.name = "stream", .kind = FIELD_BOOLEAN,                                           \
		.description = "Answer with events while it goes on: progress, then `done` with "  \
			       "the result or `refused` with an error. `Accept: "                  \
			       "text/event-stream` or `application/x-ndjson` asks for the same.",  \
		.fallback = "false"                                                                \
	}

static const struct field pip_body[] = {
	{ .name = "package",
	  .kind = FIELD_STRING,
	  .required = true,
	  .min = 1,
	  .max = 128,
	  .description = "Its name on the index, perhaps with versions: requests, numpy>=1.26,<2.",
	  .example = "\"requests\"" },
	{ .name = "version",
	  .kind = FIELD_STRING,
	  .min = 1,
	  .max = 64,
	  .description = "Its version.",
	  .example = "\"2.31.0\"",
	  .fallback = "\"latest\"" },
	{ .name = "session_id",
	  .kind = FIELD_STRING,
	  .min = 1,
	  .max = NAME_LENGTH_MAX,
	  .pattern = NAME_PATTERN,
	  .check = name_ok,
	  .description = "For this session alone; without it, for all sandboxes of the caller that "
			 "have the daemon's own image.",
	  .example = "\"analysis-1\"" },
	STREAM_FIELD,
	{ 0 },
};

static const struct field install_body[] = {
	{ .name = "packages",
	  .kind = FIELD_STRING_LIST,
	  .required = true,
	  .min = 1,
	  .max = INSTALL_REQUIREMENTS_MAX,
	  .description = "Names on the index, perhaps with versions.",
	  .example = "[\"requests\", \"numpy>=1.26\"]" },
	{ .name = "language",
	  .kind = FIELD_STRING,
	  .min = 1,
	  .max = 32,
	  .description = "python (from the python index) or javascript (from the npm registry).",
	  .example = "\"python\"",
	  .fallback = "\"python\"" },
	STREAM_FIELD,
	{ 0 },
};

static const struct field sandbox_params[] = { ROUTE_SANDBOX_PARAM, { 0 } };

#define ERRORS                                                                                     \
	{ 403, "A rule of the operator's is against it; the message says which.", "Error", NULL,   \
	  "package_blocked package_not_allowed package_lookalike package_not_pinned "              \
	  "too_many_packages policy_refused" },                                                    \
		{ 413, "It is too big.", "Error", NULL, "package_too_big" },                       \
		ROUTE_TOO_MUCH("packages_busy package_rate"),                                      \
		{ 501, "This daemon installs no such packages.", "Error", NULL,                    \
		  "not_configured no_installer" },                                                 \
		{ 502, "The index or what fetches from it failed.", "Error", NULL,                 \
		  "index_unavailable install_failed" },                                            \
		{ 503, "Not now.", "Error", NULL, "install_failed draining" },                     \
	{                                                                                          \
		504, "It took too long.", "Error", NULL, "index_timeout"                           \
	}

#define BAD_PACKAGE                                                                                \
	"invalid_requirement version_not_found build_failed invalid_package hash_mismatch"

static const struct response_doc pip_out[] = {
	{ 200, "Installed.", "PipInstallResult", NULL },
	{ 200, "Events.", "ServerSentEvent", "text/event-stream" },
	{ 200, "Events.", "EventLine", "application/x-ndjson" },
	{ 404, "The index has no such package.", "Error", NULL, "package_not_found" },
	{ 409, "It contradicts what is there.", "Error", NULL, "package_conflict session_ended" },
	{ 422, "No such thing, or nothing that may be installed.", "Error", NULL, BAD_PACKAGE },
	ERRORS,
	{ 0 },
};
static const struct response_doc install_out[] = {
	{ 200, "Installed.", "PackagesInstalled", NULL },
	{ 200, "Events.", "ServerSentEvent", "text/event-stream" },
	{ 200, "Events.", "EventLine", "application/x-ndjson" },
	{ 404, "No such sandbox of yours, or no such package.", "Error", NULL,
	  "no_such_sandbox package_not_found" },
	{ 409, "It contradicts what is there, or the sandbox does not run.", "Error", NULL,
	  "package_conflict session_ended sandbox_stopped" },
	{ 422, "No such thing, or nothing that may be installed.", "Error", NULL,
	  BAD_PACKAGE " unsupported_language" },
	ERRORS,
	{ 0 },
};
static const struct response_doc list_out[] = {
	{ 200, "What was installed.", "PackageList", NULL },
	{ 404, "No such sandbox of yours.", "Error", NULL, "no_such_sandbox" },
	{ 0 },
};

static const struct route rows[] = {
	{ .method = "POST",
	  .path = "/pip_install",
	  .id = "pip_install",
	  .summary = "Install a Python package",
	  .description =
		  "Resolves, downloads and, if need be, builds it in a cell of its own, checks every "
		  "package that comes with it, and makes them importable at once.",
	  .tag = "packages",
	  .body = pip_body,
	  .responses = pip_out,
	  .handler = handle_pip_install },
	{ .method = "POST",
	  .path = "/v1/sandboxes/{name}/packages",
	  .id = "install_packages",
	  .summary = "Install packages into a sandbox",
	  .description = "Python or npm packages, for code and commands of this sandbox.",
	  .tag = "packages",
	  .params = sandbox_params,
	  .body = install_body,
	  .responses = install_out,
	  .handler = handle_packages_install },
	{ .method = "GET",
	  .path = "/v1/sandboxes/{name}/packages",
	  .id = "list_packages",
	  .summary = "List packages of a sandbox",
	  .description = "Those that were installed into it, or for all of its owner's.",
	  .tag = "packages",
	  .params = sandbox_params,
	  .responses = list_out,
	  .handler = handle_packages_list },
	{ 0 },
};

const struct route_table routes_packages = { .rows = rows };
