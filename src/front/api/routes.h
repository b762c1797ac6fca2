/* SPDX-License-Identifier: Apache-2.0 */
/*
 * routes.h - The tables of routes, one per subject, and the fields that they share. Only route.c,
 * the tables and the tool that makes sandboxes need this.
 */
#ifndef CAISSON_FRONT_ROUTES_H
#define CAISSON_FRONT_ROUTES_H

#include "front/http/route.h"

extern const struct route_table routes_core;
extern const struct route_table routes_sandboxes;
extern const struct route_table routes_exec;
extern const struct route_table routes_files;
extern const struct route_table routes_output;
extern const struct route_table routes_ports;
extern const struct route_table routes_egress;
extern const struct route_table routes_approvals;
extern const struct route_table routes_mcp;
extern const struct route_table routes_packages;
extern const struct route_table routes_workspaces;
extern const struct route_table routes_jupyter;

/* A SandboxSpec without its name, for whoever else makes sandboxes; ends with name NULL. */
extern const struct field *const routes_spec_fields;

/* The first parameter of everything below /v1/sandboxes/{name}. */
#define ROUTE_SANDBOX_PARAM                                                                        \
	{                                                                                          \
		.name = "name", .kind = FIELD_STRING, .required = true, .min = 1,                  \
		.max = NAME_LENGTH_MAX, .pattern = NAME_PATTERN, .check = name_ok,                 \
		.description = "Name of a sandbox of yours.", .example = "\"build-7\""             \
	}

/* Code that may not be run as it was asked for. */
#define ROUTE_BAD_CODE                                                                             \
	{                                                                                          \
		422, "Not what this operation takes, or a language that is not here.", "Error",    \
			NULL, "unknown_language language_unavailable unsupported_field"            \
	}
/* Beyond what the operator's policy lets this owner have, ever or at once (ROUTE_TOO_MUCH). */
#define ROUTE_POLICY                                                                               \
	{                                                                                          \
		403, "Beyond what the operator's policy allows; the message names the rule.",      \
			"Error", NULL, "policy_refused"                                            \
	}
/* No room: for a sandbox, or in one. @codes_ beside the common one. */
#define ROUTE_TOO_MUCH(codes_)                                                                     \
	{                                                                                          \
		429, "No room for that now, or too many wrong tokens from this address.", "Error", \
			NULL, codes_                                                               \
	}

#define ROUTE_CODE_CHARS_MAX 1048576

/* Code, by the name that the route gives it. */
#define ROUTE_CODE_FIELD(name_, text)                                                              \
	{                                                                                          \
		.name = (name_), .kind = FIELD_STRING, .required = true, .min = 1,                 \
		.max = ROUTE_CODE_CHARS_MAX, .description = (text), .example = "\"print(6 * 7)\""  \
	}
#define ROUTE_LANGUAGE_FIELD                                                                       \
	{                                                                                          \
		.name = "language", .kind = FIELD_STRING, .min = 1, .max = 32,                     \
		.description =                                                                     \
			"python, bash, javascript or r, where the image has the interpreter.",     \
		.example = "\"python\"", .fallback = "\"python\""                                  \
	}
#define ROUTE_STDIN_FIELD                                                                          \
	{                                                                                          \
		.name = "stdin", .kind = FIELD_STRING,                                             \
		.description = "For python: lines that answer input(). Without it input() is an "  \
			       "error that says so.",                                              \
		.example = "\"first line\\nsecond line\\n\""                                       \
	}

#define ROUTE_TIMEOUT_MIN 0.001 /* what the clock here can tell from none */

/* A time limit; put the body into its table's `timed`. */
#define ROUTE_TIMEOUT_FIELD                                                                        \
	{                                                                                          \
		.name = "timeout", .kind = FIELD_NUMBER, .min = ROUTE_TIMEOUT_MIN, .max = 120,     \
		.description =                                                                     \
			"Seconds of wall time, to the millisecond; then it is interrupted, "       \
			"and ended if it goes on.",                                                \
		.example = "10", .fallback = "30"                                                  \
	}

#endif
