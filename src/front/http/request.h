/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.h - Check a request against its row of the route table: query, media type, body.
 *
 * Each function finds the request valid, or answers it with the error.
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

/*
 * request_fields() - The fields of the request as a checked object (caller decrefs): the body where
 * the route takes JSON, otherwise the query, with numbers and booleans in their JSON form and a
 * FIELD_STRING_LIST for what may be repeated. NULL in @ret: the route has neither. False: answered.
 */
bool request_fields(struct http_exchange *x, const struct route *r, json_t **ret);

#define QUERY_NAME_MAX 64

/*
 * query_name_next() - The name of the next parameter in "a=1&b=2", decoded once ('+' and %XX),
 * NUL-terminated.
 * @at: the start of the query at first; moves behind the parameter
 *
 * A name that is too long is cut, and a NUL byte in it becomes '?'; both can only make a name
 * unknown. Empty parts ("a&&b") are skipped. Pure.
 * Return: false when there is no parameter left.
 */
bool query_name_next(const char **at, char name[QUERY_NAME_MAX]);

/* request_query_unknown() - The first parameter of @query that @r does not declare. Pure. */
bool request_query_unknown(const struct route *r, const char *query, char *name, size_t size);

/*
 * request_type_ok() - Whether a Content-Type may carry JSON here: application/json, absent, or the
 * default of `curl -d` (application/x-www-form-urlencoded). A page of another site can make a
 * browser send the last one, so it is refused from browsers. Pure.
 */
bool request_type_ok(const char *content_type, bool from_browser);

#endif
