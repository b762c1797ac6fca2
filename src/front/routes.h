/* SPDX-License-Identifier: Apache-2.0 */
/*
 * routes.h - The tables of routes, one per subject, and the fields that they share. Only route.c and the
 * tables need this.
 */
#ifndef CAISSON_FRONT_ROUTES_H
#define CAISSON_FRONT_ROUTES_H

#include "front/route.h"

struct route_table {
	const struct route *rows; /* ends with method NULL */
	/* Bodies whose `timeout` has the daemon's limits, or NULL. Ends with NULL. */
	struct field *const *timed;
};

extern const struct route_table routes_core;
extern const struct route_table routes_sandboxes;
extern const struct route_table routes_exec;
extern const struct route_table routes_files;
extern const struct route_table routes_output;

/* The first parameter of everything below /v1/sandboxes/{name}. */
#define ROUTE_SANDBOX_PARAM                                                                        \
	{                                                                                          \
		.name = "name", .kind = FIELD_STRING, .required = true, .min = 1,                  \
		.max = ROUTE_SESSION_MAX, .pattern = ROUTE_SESSION_PATTERN,                        \
		.check = route_session_name, .description = "Name of a sandbox of yours.",         \
		.example = "\"build-7\""                                                           \
	}

/* A time limit; put the body into its table's `timed`. */
#define ROUTE_TIMEOUT_FIELD                                                                        \
	{                                                                                          \
		.name = "timeout", .kind = FIELD_INTEGER, .min = 1, .max = 120,                    \
		.description = "Seconds of wall time; then it is interrupted, and ended if it "    \
			       "goes on.",                                                         \
		.example = "10", .fallback = "30"                                                  \
	}

#endif
