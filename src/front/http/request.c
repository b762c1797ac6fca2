/* SPDX-License-Identifier: Apache-2.0 */
/* request.c - What the route table says about a request, enforced. */
#include "front/http/request.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "front/http/query.h"
#include "front/http/reply.h"
#include "front/http/route.h"
#include "front/support/schema.h"
#include "net/http.h"

bool request_query_unknown(const struct route *r, const char *query, char *name, size_t size)
{
	char found[QUERY_NAME_MAX];

	while (query_name_next(&query, found)) {
		const struct field *f = r->query;

		while (f && f->name && strcmp(f->name, found) != 0)
			f++;
		if (!f || !f->name) {
			(void)snprintf(name, size, "%s", found);
			return true;
		}
	}
	return false;
}

bool request_type_ok(const char *content_type, bool from_browser)
{
	static const char json[] = "application/json", form[] = "application/x-www-form-urlencoded";
	size_t len;

	if (!content_type)
		return true;
	len = strcspn(content_type, "; \t");
	if (len == sizeof(json) - 1 && strncasecmp(content_type, json, len) == 0)
		return true;
	return !from_browser && len == sizeof(form) - 1 &&
	       strncasecmp(content_type, form, len) == 0;
}

/* Browsers name the origin of every POST, and most say of which kind the request is. */
static bool from_browser(const struct http_exchange *x)
{
	return http_header(x, "origin") || http_header(x, "sec-fetch-site");
}

bool request_head_ok(struct http_exchange *x, const struct route *r)
{
	const char *length = http_header(x, "content-length");
	bool announced = http_header(x, "transfer-encoding") ||
			 (length && strspn(length, "0") != strlen(length));
	char name[QUERY_NAME_MAX];

	if (r->raw)
		return true;
	if (request_query_unknown(r, http_request(x)->query, name, sizeof(name))) {
		reply_error(x, 400, "unknown_parameter", name, "see /openapi.json",
			    "'%s' is not a query parameter of %s %s", name, r->method, r->path);
		return false;
	}
	if (r->content)
		return true; /* bytes: whatever they are said to be */
	if (announced && !r->body) {
		reply_error(x, 400, "body_not_allowed", NULL, NULL, "%s %s takes no body",
			    r->method, r->path);
		return false;
	}
	if (announced && !request_type_ok(http_header(x, "content-type"), from_browser(x))) {
		reply_error(x, 415, "unsupported_media_type", NULL,
			    "send 'Content-Type: application/json'", "the body must be JSON");
		return false;
	}
	return true;
}

json_t *request_json(struct http_exchange *x, const struct route *r)
{
	const struct http_request *q = http_request(x);
	struct schema_error e;
	json_t *object = schema_parse(q->body ? q->body : "", q->body_len, r->body, &e);

	if (!object)
		reply_schema(x, &e);
	return object;
}
