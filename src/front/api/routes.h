/* SPDX-License-Identifier: Apache-2.0 */
/*
 * routes.h - The tables of routes, one per subject, and the responses that they share. Only the
 * tables need this.
 */
#ifndef CAISSON_FRONT_ROUTES_H
#define CAISSON_FRONT_ROUTES_H

#include "front/http/route.h"
#include "front/operations/operations.h"

/* Each ends with method NULL. */
extern const struct route routes_core[], routes_sandboxes[], routes_exec[], routes_files[],
	routes_output[], routes_network[], routes_mcp[], routes_jupyter[], routes_packages[],
	routes_workspaces[];

/* Handlers of a row: for the daemon's services, and for the sandbox that the path names. */
#define FOR_DAEMON(handler_)                                                                       \
	{                                                                                          \
		.services = (handler_)                                                             \
	}
#define FOR_SANDBOX(handler_)                                                                      \
	{                                                                                          \
		.sandbox = (handler_)                                                              \
	}

/* ---- rows of struct response_doc ----------------------------------------------------------- */

#define RESPONSE(status_, schema_, text_)                                                          \
	{                                                                                          \
		.status = (status_), .schema = (schema_), .description = (text_)                   \
	}
#define CONTENT(status_, type_, text_)                                                             \
	{                                                                                          \
		.status = (status_), .content_type = (type_), .description = (text_)               \
	}
#define FAILURE(status_, codes_, text_)                                                            \
	{                                                                                          \
		.status = (status_), .schema = "Error", .codes = (codes_), .description = (text_)  \
	}
/* Beside a result, the same as events while they happen. */
#define EVENTS CONTENT(200, "text/event-stream", NULL), CONTENT(200, "application/x-ndjson", NULL)
#define RESPONSES(...) ((const struct response_doc[]){ __VA_ARGS__, { 0 } })

#define NO_SANDBOX FAILURE(404, "no_such_sandbox", "There is no such sandbox of yours.")
/* Code that may not be run as it was asked for. */
#define BAD_CODE                                                                                   \
	FAILURE(422, "unknown_language language_unavailable unsupported_field",                    \
		"Not what this operation takes, or a language that is not here.")
/* More than the operator's policy lets this owner have, ever or at once (TOO_MUCH). */
#define POLICY                                                                                     \
	FAILURE(403, "policy_refused",                                                             \
		"Beyond what the operator's policy allows; the message names the rule.")
/* The same, of operations that may have an image pulled; and what else may go wrong with that. */
#define POLICY_OF_IMAGES                                                                           \
	FAILURE(403, "policy_refused image_pull_denied",                                           \
		"Beyond what the operator's policy allows; the message names the rule. Or this "   \
		"daemon does not pull from the registry of the image.")
#define PULL_FAILURES                                                                              \
	FAILURE(502, "registry_unavailable image_pull_failed",                                     \
		"The image could not be pulled: its registry cannot be reached, or sends what is " \
		"no image; the message has the reason."),                                          \
		FAILURE(504, "image_pull_timeout", "The image was not pulled in time.")
/* No room: for a sandbox, or in one. @codes_ beside the common one. */
#define TOO_MUCH(codes_)                                                                           \
	FAILURE(429, codes_, "No room for that now, or too many wrong tokens from this address.")
#define SOCKET RESPONSE(101, NULL, "A WebSocket.")
#define NO_SOCKET FAILURE(426, "upgrade_required", "The request is not a WebSocket handshake.")

#define SANDBOX "/v1/sandboxes/{name}"

#endif
