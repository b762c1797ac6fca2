/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.c - Check a request against its row of the route table: query, media type, body.
 *
 * A query string becomes a JSON object, so that one schema checks bodies and queries alike.
 */
#include "front/http/request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/num.h"
#include "base/utf8.h"
#include "front/http/reply.h"
#include "front/http/route.h"
#include "front/support/json_alloc.h"
#include "front/support/schema.h"
#include "net/http.h"
#include "net/target.h"

#define PART_MAX 8192u

/* ---- the head ------------------------------------------------------------------------------ */

bool query_name_next(const char **at, char name[QUERY_NAME_MAX])
{
	const char *s = *at + strspn(*at, "&");
	size_t n = 0;

	if (!*s) {
		*at = s;
		return false;
	}
	for (; *s && *s != '=' && *s != '&'; s++) {
		char c = *s == '+' ? ' ' : *s;
		int byte = hex_escape(s, strnlen(s, 3));

		if (byte >= 0) {
			c = (char)byte;
			s += 2;
		}
		if (n < QUERY_NAME_MAX - 1)
			name[n++] = c ? c : '?';
	}
	name[n] = '\0';
	*at = s + strcspn(s, "&");
	return true;
}

bool request_query_unknown(const struct route *r, const char *query, char *name, size_t size)
{
	char found[QUERY_NAME_MAX];

	while (query_name_next(&query, found))
		if (!field_named(r->op->fields, IN_QUERY, found)) {
			(void)snprintf(name, size, "%s", found);
			return true;
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

/* Browsers send the origin of every POST, and most also send the kind of the request. */
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
		return true; /* bytes of any media type */
	if (announced && !route_takes_json(r)) {
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

/* ---- the body ------------------------------------------------------------------------------ */

static json_t *parse_body(struct http_exchange *x, const struct route *r)
{
	const struct http_request *q = http_request(x);
	struct schema_error e;
	json_t *object =
		schema_parse(q->body ? q->body : "", q->body_len, r->op->fields, IN_BODY, &e);

	if (!object)
		reply_schema(x, &e);
	return object;
}

/* ---- the query ----------------------------------------------------------------------------- */

/* Text that is not a value of its kind stays a string, and the schema refuses it. NULL: no memory.
 */
static json_t *value_of(const struct field *f, const struct buf *text)
{
	json_t *v = NULL;
	json_error_t e;

	if (f->kind == FIELD_INTEGER || f->kind == FIELD_NUMBER || f->kind == FIELD_BOOLEAN) {
		v = json_alloc_load(buf_str(text), text->len, JSON_DECODE_ANY, &e);
		if (!v && !e.text[0])
			return NULL;
	}
	if (v && (json_is_number(v) || json_is_boolean(v)))
		return v;
	json_decref(v);
	return json_stringn_nocheck(buf_str(text), text->len);
}

/* 0; -EINVAL: it is there already, or is not UTF-8; or -ENOMEM. */
static int add(json_t *o, const struct field *f, const struct buf *text)
{
	json_t *there = json_object_get(o, f->name);

	if (!f->bytes && !utf8_valid(buf_str(text), text->len))
		return -EINVAL;
	if (f->kind != FIELD_STRING_LIST && there)
		return -EINVAL;
	if (f->kind != FIELD_STRING_LIST)
		return json_object_set_new(o, f->name, value_of(f, text)) == 0 ? 0 : -ENOMEM;
	if (!there) {
		there = json_array();
		if (json_object_set_new(o, f->name, there) < 0)
			return -ENOMEM;
	}
	return json_array_append_new(there, value_of(f, text)) == 0 ? 0 : -ENOMEM;
}

static json_t *parse_query(struct http_exchange *x, const struct route *r)
{
	_buf_ struct buf key = BUF_INIT(PART_MAX), value = BUF_INIT(PART_MAX);
	const char *at = http_request(x)->query;
	json_t *o = json_object();
	struct schema_error e;
	int more = o ? 0 : -ENOMEM;

	while (more == 0 && (more = query_next(&at, &key, &value)) > 0) {
		const struct field *f = field_named(r->op->fields, IN_QUERY, buf_str(&key));

		more = f ? add(o, f, &value) : 0;
		if (more == -EINVAL) {
			reply_error(x, 400, "invalid_query", f->name, NULL,
				    "'%s' may occur once, and is text in UTF-8", f->name);
			json_decref(o);
			return NULL;
		}
	}
	if (more == -ENOMEM)
		reply_no_memory(x);
	else if (more < 0)
		reply_error(x, 400, "invalid_query", NULL, "use %XX for bytes of UTF-8",
			    "the query string is malformed");
	else if (schema_check(o, r->op->fields, IN_QUERY, &e))
		return o;
	else
		reply_schema(x, &e);
	json_decref(o);
	return NULL;
}

bool request_fields(struct http_exchange *x, const struct route *r, json_t **ret)
{
	bool body = route_takes_json(r);

	*ret = NULL;
	if (!body && !field_from(r->op->fields, IN_QUERY))
		return true;
	*ret = body ? parse_body(x, r) : parse_query(x, r);
	return *ret != NULL;
}
