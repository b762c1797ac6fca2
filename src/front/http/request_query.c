/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request_query.c - A query string as a JSON object, so that one schema checks bodies and queries
 * alike.
 */
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "front/http/reply.h"
#include "front/http/request.h"
#include "front/http/route.h"
#include "front/support/json_alloc.h"
#include "front/support/schema.h"
#include "net/http.h"
#include "net/target.h"

#define PART_MAX 8192u

static const struct field *field_of(const struct route *r, const char *name)
{
	const struct field *f = r->query;

	while (f && f->name && strcmp(f->name, name) != 0)
		f++;
	return f && f->name ? f : NULL;
}

/* What is no value of its kind stays a string, and the schema says so. NULL: no memory. */
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

/* 0, -EINVAL: it is there already, or is no text; -ENOMEM. */
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

json_t *request_query(struct http_exchange *x, const struct route *r)
{
	_buf_ struct buf key = BUF_INIT(PART_MAX), value = BUF_INIT(PART_MAX);
	const char *at = http_request(x)->query;
	json_t *o = json_object();
	struct schema_error e;
	int more = o ? 0 : -ENOMEM;

	while (more == 0 && (more = query_next(&at, &key, &value)) > 0) {
		const struct field *f = field_of(r, buf_str(&key));

		more = f ? add(o, f, &value) : 0;
		if (more == -EINVAL) {
			reply_error(x, 400, "invalid_query", f->name, NULL,
				    "'%s' may occur once, and is text in UTF-8", f->name);
			json_decref(o);
			return NULL;
		}
	}
	if (more == -ENOMEM)
		reply_retry(x, 503, 1, "out_of_memory", NULL, "the daemon is out of memory");
	else if (more < 0)
		reply_error(x, 400, "invalid_query", NULL, "use %XX for bytes of UTF-8",
			    "the query string is malformed");
	else if (schema_check(o, r->query, &e))
		return o;
	else
		reply_schema(x, &e);
	json_decref(o);
	return NULL;
}
