/* SPDX-License-Identifier: Apache-2.0 */
/*
 * openapi_answers.c - What an operation of the OpenAPI document answers with: responses, and the
 * codes of errors.
 *
 * Those of a route stand in its rows; those that follow from its form (a body, a query, a token)
 * are in one table here, and what may be wrong with a field follows from the field. x-errors has
 * the codes by status, so that a client knows what it may have to tell apart.
 */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "front/http/openapi.h"
#include "front/http/route.h"

/* Errors that routes have in common, by what causes them; in the order of their status. */
enum {
	WHEN_ALWAYS = 0,
	WHEN_TOKEN = 1 << 0,
	WHEN_BODY = 1 << 1,
	WHEN_NO_BODY = 1 << 2, /* nor content */
	WHEN_QUERY = 1 << 3,
	WHEN_WORK = 1 << 4,
	WHEN_KEY = 1 << 5,
};
static const struct {
	int status;
	unsigned int when;
	const char *name, *codes;
} common[] = {
	{ 400, WHEN_ALWAYS, "BadRequest", "bad_request unknown_parameter token_in_url" },
	{ 400, WHEN_BODY, "BadRequest",
	  "malformed_json duplicate_key too_deep too_many_values out_of_range" },
	{ 400, WHEN_NO_BODY, "BadRequest", "body_not_allowed" },
	{ 400, WHEN_QUERY, "BadRequest", "invalid_query" },
	{ 400, WHEN_KEY, "BadRequest", "invalid_value" },
	{ 401, WHEN_TOKEN, "Unauthorized", "unauthorized" },
	{ 403, WHEN_ALWAYS, "Forbidden", "forbidden_origin" },
	{ 409, WHEN_KEY, NULL, "in_progress" }, /* these have a row of their own */
	{ 413, WHEN_BODY, "PayloadTooLarge", "payload_too_large" },
	{ 415, WHEN_BODY, "UnsupportedMediaType", "unsupported_media_type" },
	{ 421, WHEN_ALWAYS, "Misdirected", "forbidden_host" },
	{ 422, WHEN_BODY, "Unprocessable", "not_an_object unknown_field" },
	{ 422, WHEN_QUERY, "Unprocessable", "" },
	{ 422, WHEN_KEY, "Unprocessable", "key_reused" },
	{ 429, WHEN_TOKEN, "TooManyRequests", "rate_limited" },
	{ 503, WHEN_WORK, "Unavailable", "draining not_recorded" },
};

static void member_ref(struct json *j, const char *key, const char *kind, const char *name)
{
	char ref[128];

	(void)snprintf(ref, sizeof(ref), "#/components/%s/%s", kind, name);
	json_key(j, key);
	json_object_begin(j);
	json_member_str(j, "$ref", ref);
	json_object_end(j);
}

/* ---- responses ----------------------------------------------------------------------------- */

/* Of a stream the schema is that of each event. */
static const char *event_schema(const char *content_type)
{
	if (!content_type)
		return NULL;
	if (strcmp(content_type, "text/event-stream") == 0)
		return "ServerSentEvent";
	return strcmp(content_type, "application/x-ndjson") == 0 ? "EventLine" : NULL;
}

static void write_content(struct json *j, const struct response_doc *d)
{
	if (!d->schema && !d->content_type)
		return;
	json_key(j, "content");
	json_object_begin(j);
	for (const struct response_doc *form = d; form->status == d->status; form++) {
		const char *stream = form->schema ? NULL : event_schema(form->content_type);

		json_key(j, form->content_type ? form->content_type : "application/json");
		json_object_begin(j);
		if (form->schema || stream)
			member_ref(j, "schema", "schemas", stream ? stream : form->schema);
		else
			json_member_raw(j, "schema", "{\"type\":\"string\"}");
		json_object_end(j);
	}
	json_object_end(j);
}

static void write_response(struct json *j, const struct response_doc *d)
{
	char status[12];

	(void)snprintf(status, sizeof(status), "%d", d->status);
	json_key(j, status);
	json_object_begin(j);
	json_member_str(j, "description", d->description);
	json_key(j, "headers");
	json_object_begin(j);
	member_ref(j, "X-Request-Id", "headers", "RequestId");
	if (d->status == 429 || d->status == 503)
		member_ref(j, "Retry-After", "headers", "RetryAfter");
	json_object_end(j);
	write_content(j, d);
	json_object_end(j);
}

static bool has_status(const struct route *r, int status)
{
	const struct response_doc *d = r->responses;

	while (d->status && d->status != status)
		d++;
	return d->status != 0;
}

static unsigned int causes_of(const struct route *r)
{
	return (r->open ? 0u : WHEN_TOKEN) | (r->body ? WHEN_BODY : 0u) |
	       (r->body || r->content ? 0u : WHEN_NO_BODY) | (r->query ? WHEN_QUERY : 0u) |
	       (r->work ? WHEN_WORK : 0u) | (r->keyed ? WHEN_KEY : 0u);
}

void openapi_write_responses(struct json *j, const struct route *r)
{
	unsigned int has = causes_of(r);
	int last = 0;

	json_key(j, "responses");
	json_object_begin(j);
	for (const struct response_doc *d = r->responses; d->status; last = d++->status)
		if (d->status != last)
			write_response(j, d);
	last = 0;
	for (size_t i = 0; i < ARRAY_SIZE(common); i++) {
		char status[12];

		if ((common[i].when & has) != common[i].when || has_status(r, common[i].status) ||
		    common[i].status == last || !common[i].name)
			continue;
		last = common[i].status;
		(void)snprintf(status, sizeof(status), "%d", last);
		member_ref(j, status, "responses", common[i].name);
	}
	json_object_end(j);
}

/* ---- errors -------------------------------------------------------------------------------- */

#define WORDS_MAX 1024u

static bool has_word(const struct buf *list, const char *word, size_t len)
{
	const char *at = buf_str(list);

	for (size_t n; *at; at += n + (at[n] == ' ')) {
		n = strcspn(at, " ");
		if (n == len && memcmp(at, word, n) == 0)
			return true;
	}
	return false;
}

/* Each word once. */
static void add_words(struct buf *list, const char *words)
{
	for (size_t n; words && *words; words += n + (words[n] == ' ')) {
		n = strcspn(words, " ");
		if (!has_word(list, words, n))
			(void)buf_printf(list, "%s%.*s", list->len ? " " : "", (int)n, words);
	}
}

/* What may be wrong with a field follows from the field. In a query all is text. */
static void add_field_codes(struct buf *list, const struct field *fields, bool query)
{
	for (const struct field *f = fields; f && f->name; f++) {
		bool text = f->kind == FIELD_STRING || f->kind == FIELD_STRING_MAP ||
			    f->kind == FIELD_STRING_LIST;

		if (f->required)
			add_words(list, "missing_field");
		if (!query || !text)
			add_words(list, "wrong_type");
		if ((f->min != 0 || f->max != 0) && f->kind != FIELD_BOOLEAN)
			add_words(list, "out_of_range");
		if ((text && !f->nul && !query) || f->check || f->values)
			add_words(list, "invalid_value");
	}
}

static void add_codes(struct buf *list, const struct route *r, int status)
{
	unsigned int has = causes_of(r);

	if (r->below)
		return; /* whatever is there says what it likes */
	for (const struct response_doc *d = r->responses; d->status; d++)
		if (d->status == status && d->schema && strcmp(d->schema, "Error") == 0)
			add_words(list, d->codes);
	for (size_t i = 0; i < ARRAY_SIZE(common); i++)
		if (common[i].status == status && (common[i].when & has) == common[i].when)
			add_words(list, common[i].codes);
	if (status == 422) {
		add_field_codes(list, r->body, false);
		add_field_codes(list, r->query, true);
	}
}

void openapi_write_errors(struct json *j, const struct route *r)
{
	_buf_ struct buf list = BUF_INIT(WORDS_MAX);
	char key[12];

	json_key(j, "x-errors");
	json_object_begin(j);
	for (int status = 400; status < 600; status++) {
		buf_clear(&list);
		add_codes(&list, r, status);
		if (list.len == 0)
			continue;
		(void)snprintf(key, sizeof(key), "%d", status);
		json_key(j, key);
		json_array_begin(j);
		for (const char *at = buf_str(&list); *at; at += strspn(at, " ")) {
			(void)json_strn(j, at, strcspn(at, " "));
			at += strcspn(at, " ");
		}
		json_array_end(j);
	}
	json_object_end(j);
}
