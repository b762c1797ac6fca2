/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.h - What the route table says about a request, enforced: query, media type, body.
 *
 * Each function either finds the request good or answers it.
 */
#ifndef CAISSON_FRONT_REQUEST_H
#define CAISSON_FRONT_REQUEST_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct http_exchange;
struct route;

/*
 * request_head_ok() - Fit for on_head, before a body is read: the query has declared parameters
 * only, and the body, if one is announced, is allowed and of a media type that is JSON.
 */
bool request_head_ok(struct http_exchange *x, const struct route *r);

/* request_json() - The body as checked JSON (caller decrefs), or NULL when it was answered. */
json_t *request_json(struct http_exchange *x, const struct route *r);

/*
 * request_query() - The query as an object (caller decrefs), checked like a body: numbers and
 * booleans in their JSON form, a FIELD_STRING_LIST for what may be repeated. NULL when it was
 * answered.
 */
json_t *request_query(struct http_exchange *x, const struct route *r);

/* request_query_unknown() - The first parameter of @query that @r does not declare. Pure. */
bool request_query_unknown(const struct route *r, const char *query, char *name, size_t size);

/*
 * request_type_ok() - Whether a Content-Type may carry JSON here: application/json, absent, or what
 * `curl -d` says when it is not told otherwise (application/x-www-form-urlencoded). That one is
 * also what a page of another site can make a browser send unasked, so it is refused from browsers.
 * Pure.
 */
bool request_type_ok(const char *content_type, bool from_browser);

#endif
