/* SPDX-License-Identifier: Apache-2.0 */
/*
 * openapi.c - The table of routes as an OpenAPI 3.1 document.
 *
 * Paths, parameters and request bodies are written from the tables and their fields, the same rows
 * that dispatch and check requests, so that the document cannot promise what the daemon does not
 * do. Fields are written by support/field.c. The schemas of answers (components) are a JSON file
 * beside this one, compiled in.
 *
 * The responses of a route are in its rows; errors that follow from its form (a body, a query, a
 * token) are in one table here, and errors of a field follow from the field. x-errors has the codes
 * by status, so that a client knows which errors it may have to tell apart.
 *
 * The operations of a path are together in the document but not always in the table: a path is
 * written when its first visible row is met, with all rows that share it.
 */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/embed.h"
#include "base/fd.h"
#include "base/json.h"
#include "front/http/route.h"

#define WORDS_MAX 1024u
#define BINARY "{\"type\":\"string\",\"format\":\"binary\"}"

extern const struct embed_file openapi_files[]; /* generated: components.json */

static const struct {
	const char *name, *description;
} tags[] = {
	{ "execution", "Run code." },
	{ "sandboxes", "Sandboxes with a name: make, find, stop, remove; code in them." },
	{ "sessions", "Sandboxes that keep their state between calls." },
	{ "commands", "Programs and scripts in a sandbox." },
	{ "processes", "Programs in the background of a sandbox, and terminals." },
	{ "files", "Files of a sandbox: content, lists, archives, changes." },
	{ "egress", "Hosts that a sandbox may reach, by name, and its connections." },
	{ "ports", "Services that listen in a sandbox, reached through the daemon." },
	{ "approvals", "Tool calls of code that wait for a person." },
	{ "executions", "Recent executions in a sandbox: results, events, output." },
	{ "packages", "Packages that code can import." },
	{ "workspaces", "Directories that outlive sandboxes." },
	{ "service", "The daemon itself." },
};

static const struct field key_header[] = {
	FIELD(0, STRING, "Idempotency-Key", 1, 255,
	      "The same request with the same key is answered again, not done again. Kept for 24 "
	      "hours.",
	      .pattern = "^[!-~]+$", .example = "\"order-66\""),
	{ 0 },
};

/* ---- requests ------------------------------------------------------------------------------ */

static void write_body(struct json *j, const struct route *r)
{
	json_member_object(j, "requestBody");
	json_member_bool(j, "required", r->content || fields_required(r->op->fields, IN_BODY));
	json_member_object(j, "content");
	json_member_object(j, r->content ? r->content : "application/json");
	json_key(j, "schema");
	if (r->content)
		json_raw(j, BINARY, sizeof(BINARY) - 1);
	else
		fields_write(j, r->op->fields, IN_BODY);
	json_object_end(j);
	json_object_end(j);
	json_object_end(j);
}

static void write_params(struct json *j, const struct field *fields, unsigned int in,
			 const char *place)
{
	for (const struct field *f = field_from(fields, in); f; f = field_from(f + 1, in)) {
		json_object_begin(j);
		json_member_str(j, "name", f->name);
		json_member_str(j, "in", place);
		json_member_bool(j, "required", f->required);
		if (f->description)
			json_member_str(j, "description", f->description);
		json_key(j, "schema");
		field_write_type(j, f);
		if (f->example)
			json_member_raw(j, "example", f->example);
		json_object_end(j);
	}
}

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
	json_member_object(j, key);
	json_member_str(j, "$ref", ref);
	json_object_end(j);
}

/* ---- responses ----------------------------------------------------------------------------- */

/* The schema of a stream is that of each event. */
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
	json_member_object(j, "content");
	for (const struct response_doc *form = d; form->status == d->status; form++) {
		const char *stream = form->schema ? NULL : event_schema(form->content_type);

		json_member_object(j, form->content_type ? form->content_type : "application/json");
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
	json_member_object(j, status);
	json_member_str(j, "description", d->description);
	json_member_object(j, "headers");
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
	bool json = route_takes_json(r);

	return (r->open ? 0u : WHEN_TOKEN) | (json ? WHEN_BODY : 0u) |
	       (json || r->content ? 0u : WHEN_NO_BODY) |
	       (field_from(r->op->fields, IN_QUERY) ? WHEN_QUERY : 0u) |
	       (r->op->work ? WHEN_WORK : 0u) | (r->op->keyed ? WHEN_KEY : 0u);
}

static void write_responses(struct json *j, const struct route *r)
{
	unsigned int has = causes_of(r);
	int last = 0;

	json_member_object(j, "responses");
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

/* The errors of a field follow from the field. In a query all values are text. */
static void add_field_codes(struct buf *list, const struct field *fields, unsigned int in)
{
	for (const struct field *f = field_from(fields, in); f; f = field_from(f + 1, in)) {
		bool query = in == IN_QUERY;
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
		return; /* the service behind the port answers */
	for (const struct response_doc *d = r->responses; d->status; d++)
		if (d->status == status && d->schema && strcmp(d->schema, "Error") == 0)
			add_words(list, d->codes);
	for (size_t i = 0; i < ARRAY_SIZE(common); i++)
		if (common[i].status == status && (common[i].when & has) == common[i].when)
			add_words(list, common[i].codes);
	if (status == 422) {
		add_field_codes(list, r->op->fields, IN_BODY);
		add_field_codes(list, r->op->fields, IN_QUERY);
	}
}

static void write_errors(struct json *j, const struct route *r)
{
	_buf_ struct buf list = BUF_INIT(WORDS_MAX);
	char key[12];

	json_member_object(j, "x-errors");
	for (int status = 400; status < 600; status++) {
		buf_clear(&list);
		add_codes(&list, r, status);
		if (list.len == 0)
			continue;
		(void)snprintf(key, sizeof(key), "%d", status);
		json_member_array(j, key);
		for (const char *at = buf_str(&list); *at; at += strspn(at, " ")) {
			(void)json_strn(j, at, strcspn(at, " "));
			at += strcspn(at, " ");
		}
		json_array_end(j);
	}
	json_object_end(j);
}

/* ---- the document -------------------------------------------------------------------------- */

static void write_operation(struct json *j, const struct route *r)
{
	const struct field *fields = r->op->fields;
	char method[16];
	size_t n = 0;

	for (; r->method[n] && n + 1 < sizeof(method); n++)
		method[n] = (char)(r->method[n] | 0x20);
	method[n] = '\0';
	json_member_object(j, method);
	json_member_str(j, "operationId", r->op->name);
	json_member_str(j, "summary", r->op->summary);
	json_member_str(j, "description", r->op->description);
	json_member_array(j, "tags");
	(void)json_str(j, r->tag);
	json_array_end(j);
	if (r->open)
		json_member_raw(j, "security", "[]");
	if (field_from(fields, IN_PATH | IN_QUERY) || r->headers || r->op->keyed) {
		json_member_array(j, "parameters");
		write_params(j, fields, IN_PATH, "path");
		write_params(j, fields, IN_QUERY, "query");
		write_params(j, r->headers, 0, "header");
		write_params(j, r->op->keyed ? key_header : NULL, 0, "header");
		json_array_end(j);
	}
	if (r->content || route_takes_json(r))
		write_body(j, r);
	write_responses(j, r);
	write_errors(j, r);
	json_object_end(j);
}

/* Whether @r is the first of its path that is shown. */
static bool is_first(const struct route *r)
{
	const struct route *other;

	for (size_t i = 0; (other = route_at(i)) != r; i++)
		if (!other->hidden && strcmp(other->path, r->path) == 0)
			return false;
	return !r->hidden;
}

static void write_paths(struct json *j)
{
	const struct route *r, *same;

	json_member_object(j, "paths");
	for (size_t i = 0; (r = route_at(i)); i++) {
		if (!is_first(r))
			continue;
		json_member_object(j, r->path);
		for (size_t k = i; (same = route_at(k)); k++)
			if (!same->hidden && strcmp(same->path, r->path) == 0)
				write_operation(j, same);
		json_object_end(j);
	}
	json_object_end(j);
}

static void write_info(struct json *j)
{
	json_member_object(j, "info");
	json_member_str(j, "title", "Caisson");
	json_member_str(j, "summary", "Run untrusted code in sealed sandboxes.");
	json_member_str(
		j, "description",
		"Every error has one shape, `{\"error\": {\"code\", \"message\", \"field\"?, "
		"\"hint\"?}}`; `x-errors` of an operation has its codes, by status. Beside these, "
		"a request that is not valid HTTP gets a status of HTTP (400, 408, 413, 414, 431, "
		"501, 505); 500, 502, 504 and the codes `out_of_memory`, `sandbox_failed` and "
		"`kernel_failed` (503) are faults of the daemon or of its machine, whose log has "
		"the request id. Requests that do not name a session get a sandbox of their own, "
		"which no other caller can see.");
	json_member_str(j, "version", CAISSON_VERSION);
	json_member_raw(j, "license", "{\"name\":\"Apache-2.0\",\"identifier\":\"Apache-2.0\"}");
	json_object_end(j);
}

void openapi_write(struct buf *out)
{
	const struct embed_file *components = embed_find(openapi_files, "components.json");
	struct json j;

	json_init(&j, out);
	json_object_begin(&j);
	json_member_str(&j, "openapi", "3.1.0");
	write_info(&j);
	json_member_raw(&j, "servers", "[{\"url\":\"/\"}]");
	json_member_raw(&j, "security", "[{\"bearer\":[]},{\"apiKey\":[]}]");
	json_member_array(&j, "tags");
	for (size_t i = 0; i < ARRAY_SIZE(tags); i++) {
		json_object_begin(&j);
		json_member_str(&j, "name", tags[i].name);
		json_member_str(&j, "description", tags[i].description);
		json_object_end(&j);
	}
	json_array_end(&j);
	write_paths(&j);
	json_key(&j, "components");
	json_raw(&j, (const char *)components->data, components->len);
	json_object_end(&j);
	/* The table is constant: a document that is not whole is a fault, or lack of memory. */
	if (json_finish(&j) < 0 && !out->err)
		out->err = j.err;
}
