/* SPDX-License-Identifier: Apache-2.0 */
/*
 * route.h - The table of HTTP requests that this daemon answers: dispatch, Allow headers and the
 * OpenAPI document come from it.
 *
 * A path may have parameters: "/sessions/{session_id}". HEAD is answered wherever GET is, OPTIONS
 * everywhere (Allow, no CORS headers). An unknown path is 404 `not_found`, a known path with
 * another method 405 `method_not_allowed` with Allow. Query parameters that a route does not
 * declare are 400 `unknown_parameter` (request.h).
 */
#ifndef CAISSON_FRONT_ROUTE_H
#define CAISSON_FRONT_ROUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "front/support/operation.h"

struct buf;
struct http_exchange;
struct mcp;
struct notebooks;
struct sandbox;
struct services;

#define ROUTE_PARAMS_MAX 4

struct route_params {
	const char *value[ROUTE_PARAMS_MAX]; /* of {name} parts, in order; decoded; point into text
					      */
	size_t n;
	char text[256];
};

/* A response that a route documents. Rows with the same status are forms of one answer, and stand
 * together. */
struct response_doc {
	int status;
	const char *description;
	const char *schema;       /* name of a component schema, or NULL */
	const char *content_type; /* default application/json; needs no schema */
	const char *codes;        /* of an Error, with spaces between */
};

struct route {
	const char *method, *path, *tag;
	/* One of them, called with the part of the daemon that it needs. */
	struct {
		void (*services)(struct services *services, struct http_exchange *x);
		/* The caller's sandbox that the first parameter names. */
		void (*sandbox)(struct sandbox *sandbox, struct http_exchange *x);
		/* States of other wires. */
		void (*mcp)(struct mcp *mcp, struct http_exchange *x);
		void (*jupyter)(struct notebooks *notebooks, struct http_exchange *x);
	} handler;
	const struct operation *op;
	const struct response_doc *responses; /* ends with status 0; the common errors are added */
	const struct field *headers;          /* for OpenAPI; the handler reads them */
	/* The body is content of this type, of any length: the handler is called with the head, and
	 * is given the rest through its request context (serve.h). */
	const char *content;
	bool open;      /* needs no token */
	bool hidden;    /* not in OpenAPI */
	bool raw;       /* the handler judges query and body itself */
	bool url_token; /* clients of its protocol send the token in the query */
	/* Its last parameter is everything below, slashes and none at all too, and is not kept. The
	 * handler judges query and body and is called as with `content`; port_admit.h decides who
	 * is let in. Method "*": any. */
	bool below;
};

/* route_at() - The i-th route of all tables (routes.h), NULL after the last. */
const struct route *route_at(size_t i);

/* route_takes_json() - Whether requests may have a JSON body: POST and PUT, unless the handler
 * judges the body itself. */
bool route_takes_json(const struct route *r);

/*
 * route_find() - @path: decoded, or "*".
 * Return: the route, or NULL with *status 404, or 405: then @allow gets the value of the Allow
 * header appended. OPTIONS is no method of any route: with 405 it is a question that @allow
 * answers.
 */
const struct route *route_find(const char *method, const char *path, struct route_params *params,
			       int *status, struct buf *allow);

/* The tables, in the order of the document; each ends with method NULL, and the list with NULL. The
 * layer above has them (api/routes_core.c). */
extern const struct route *const route_tables[];

/* openapi_write() - OpenAPI 3.1 as JSON, from the table. */
void openapi_write(struct buf *out);

#endif
