/* SPDX-License-Identifier: Apache-2.0 */
/*
 * openapi.c - The table of routes as an OpenAPI 3.1 document.
 *
 * Paths, parameters and request bodies are written from the tables and their fields, the same rows
 * that dispatch and check requests, so that the document cannot promise what the daemon does not
 * do. What answers look like (components) is a JSON file beside this one, compiled in.
 *
 * A path's operations stand together in the document but not always in the table: a path is written
 * when its first visible row is met, with all rows that share it.
 */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/embed.h"
#include "base/fd.h"
#include "base/json.h"
#include "front/route.h"

extern const struct embed_file openapi_files[]; /* generated: components.json */

static const struct {
	const char *name, *description;
} tags[] = {
	{ "execution", "Run code." },
	{ "sessions", "Sandboxes that keep their state between calls." },
	{ "commands", "Programs and scripts in a sandbox." },
	{ "processes", "Programs in the background of a sandbox, and terminals." },
	{ "files", "Files of a sandbox: content, lists, archives, changes." },
	{ "executions", "What was done in a sandbox lately: results, events, output." },
	{ "packages", "What code can import." },
	{ "service", "The daemon itself." },
};

/* Errors that routes have in common, by what causes them. */
enum { WHEN_ALWAYS = 0, WHEN_TOKEN = 1 << 0, WHEN_BODY = 1 << 1, WHEN_WORK = 1 << 2 };
static const struct {
	int status;
	unsigned int when;
	const char *name;
} common[] = {
	{ 400, WHEN_ALWAYS, "BadRequest" },         { 401, WHEN_TOKEN, "Unauthorized" },
	{ 403, WHEN_ALWAYS, "Forbidden" },          { 413, WHEN_BODY, "PayloadTooLarge" },
	{ 415, WHEN_BODY, "UnsupportedMediaType" }, { 421, WHEN_ALWAYS, "Misdirected" },
	{ 422, WHEN_BODY, "Unprocessable" },        { 429, WHEN_TOKEN, "TooManyRequests" },
	{ 500, WHEN_ALWAYS, "Internal" },           { 503, WHEN_TOKEN, "Unavailable" },
};

static const char *const kind_types[] = {
	[FIELD_STRING] = "string",   [FIELD_INTEGER] = "integer",   [FIELD_NUMBER] = "number",
	[FIELD_BOOLEAN] = "boolean", [FIELD_STRING_MAP] = "object", [FIELD_STRING_LIST] = "array",
};

static void member_raw(struct json *j, const char *key, const char *raw)
{
	json_key(j, key);
	json_raw(j, raw, strlen(raw));
}

static void member_ref(struct json *j, const char *key, const char *kind, const char *name)
{
	char ref[128];

	(void)snprintf(ref, sizeof(ref), "#/components/%s/%s", kind, name);
	json_key(j, key);
	json_object_begin(j);
	json_member_str(j, "$ref", ref);
	json_object_end(j);
}

/* ---- fields ------------------------------------------------------------------------------------ */

static void write_bounds(struct json *j, const struct field *f)
{
	static const struct {
		const char *min, *max;
	} words[] = {
		[FIELD_STRING] = { "minLength", "maxLength" },
		[FIELD_INTEGER] = { "minimum", "maximum" },
		[FIELD_NUMBER] = { "minimum", "maximum" },
		[FIELD_BOOLEAN] = { NULL, NULL },
		[FIELD_STRING_MAP] = { "minProperties", "maxProperties" },
		[FIELD_STRING_LIST] = { "minItems", "maxItems" },
	};
	unsigned int digits = f->kind == FIELD_NUMBER ? 3 : 0;

	if ((f->min == 0 && f->max == 0) || !words[f->kind].min)
		return;
	json_key(j, words[f->kind].min);
	json_double(j, f->min, digits);
	json_key(j, words[f->kind].max);
	json_double(j, f->max, digits);
}

/* The schema of a field. Optional members of a body may be null, which means absent. */
static void write_field(struct json *j, const struct field *f, bool nullable)
{
	json_object_begin(j);
	json_key(j, "type");
	if (nullable && !f->required) {
		json_array_begin(j);
		(void)json_str(j, kind_types[f->kind]);
		(void)json_str(j, "null");
		json_array_end(j);
	} else {
		(void)json_str(j, kind_types[f->kind]);
	}
	if (f->description && nullable)
		json_member_str(j, "description", f->description);
	write_bounds(j, f);
	if (f->pattern)
		json_member_str(j, "pattern", f->pattern);
	if (f->values) {
		json_key(j, "enum");
		json_array_begin(j);
		for (size_t i = 0; f->values[i]; i++)
			(void)json_str(j, f->values[i]);
		if (nullable && !f->required)
			json_none(j);
		json_array_end(j);
	}
	if (f->kind == FIELD_STRING_MAP)
		member_raw(j, "additionalProperties", "{\"type\":\"string\"}");
	if (f->kind == FIELD_STRING_LIST)
		member_raw(j, "items", "{\"type\":\"string\"}");
	if (f->fallback)
		member_raw(j, "default", f->fallback);
	if (f->example && nullable) {
		json_key(j, "examples");
		json_array_begin(j);
		json_raw(j, f->example, strlen(f->example));
		json_array_end(j);
	}
	json_object_end(j);
}

static bool any_required(const struct field *f)
{
	while (f->name && !f->required)
		f++;
	return f->name != NULL;
}

static void write_body(struct json *j, const struct route *r)
{
	json_key(j, "requestBody");
	json_object_begin(j);
	json_member_bool(j, "required", any_required(r->body));
	json_key(j, "content");
	json_object_begin(j);
	json_key(j, "application/json");
	json_object_begin(j);
	json_key(j, "schema");
	json_object_begin(j);
	json_member_str(j, "type", "object");
	json_member_bool(j, "additionalProperties", false);
	if (any_required(r->body)) {
		json_key(j, "required");
		json_array_begin(j);
		for (const struct field *f = r->body; f->name; f++)
			if (f->required)
				(void)json_str(j, f->name);
		json_array_end(j);
	}
	json_key(j, "properties");
	json_object_begin(j);
	for (const struct field *f = r->body; f->name; f++) {
		json_key(j, f->name);
		write_field(j, f, true);
	}
	json_object_end(j);
	json_object_end(j);
	json_object_end(j);
	json_object_end(j);
	json_object_end(j);
}

static void write_content_body(struct json *j, const struct route *r)
{
	json_key(j, "requestBody");
	json_object_begin(j);
	json_member_bool(j, "required", true);
	json_key(j, "content");
	json_object_begin(j);
	json_key(j, r->content);
	json_object_begin(j);
	member_raw(j, "schema", "{\"type\":\"string\",\"format\":\"binary\"}");
	json_object_end(j);
	json_object_end(j);
	json_object_end(j);
}

static void write_params(struct json *j, const struct field *fields, const char *in)
{
	for (const struct field *f = fields; f && f->name; f++) {
		json_object_begin(j);
		json_member_str(j, "name", f->name);
		json_member_str(j, "in", in);
		json_member_bool(j, "required", f->required);
		if (f->description)
			json_member_str(j, "description", f->description);
		json_key(j, "schema");
		write_field(j, f, false);
		if (f->example)
			member_raw(j, "example", f->example);
		json_object_end(j);
	}
}

/* ---- responses ---------------------------------------------------------------------------------- */

static void write_content(struct json *j, const struct response_doc *d)
{
	if (!d->schema && !d->content_type)
		return;
	json_key(j, "content");
	json_object_begin(j);
	for (const struct response_doc *form = d; form->status == d->status; form++) {
		json_key(j, form->content_type ? form->content_type : "application/json");
		json_object_begin(j);
		if (form->schema)
			member_ref(j, "schema", "schemas", form->schema);
		else
			member_raw(j, "schema", "{\"type\":\"string\"}");
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

static void write_responses(struct json *j, const struct route *r)
{
	unsigned int has = (r->open ? 0u : WHEN_TOKEN) | (r->body ? WHEN_BODY : 0u);
	int last = 0;

	json_key(j, "responses");
	json_object_begin(j);
	for (const struct response_doc *d = r->responses; d->status; last = d++->status)
		if (d->status != last)
			write_response(j, d);
	for (size_t i = 0; i < ARRAY_SIZE(common); i++) {
		char status[12];

		if ((common[i].when & has) != common[i].when || has_status(r, common[i].status))
			continue;
		(void)snprintf(status, sizeof(status), "%d", common[i].status);
		member_ref(j, status, "responses", common[i].name);
	}
	json_object_end(j);
}

/* ---- the document ------------------------------------------------------------------------------- */

static void write_operation(struct json *j, const struct route *r)
{
	char method[16];
	size_t n = 0;

	for (; r->method[n] && n + 1 < sizeof(method); n++)
		method[n] = (char)(r->method[n] | 0x20);
	method[n] = '\0';
	json_key(j, method);
	json_object_begin(j);
	json_member_str(j, "operationId", r->id);
	json_member_str(j, "summary", r->summary);
	if (r->description)
		json_member_str(j, "description", r->description);
	json_key(j, "tags");
	json_array_begin(j);
	(void)json_str(j, r->tag);
	json_array_end(j);
	if (r->open)
		member_raw(j, "security", "[]");
	if (r->params || r->query) {
		json_key(j, "parameters");
		json_array_begin(j);
		write_params(j, r->params, "path");
		write_params(j, r->query, "query");
		json_array_end(j);
	}
	if (r->body)
		write_body(j, r);
	if (r->content)
		write_content_body(j, r);
	write_responses(j, r);
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

	json_key(j, "paths");
	json_object_begin(j);
	for (size_t i = 0; (r = route_at(i)); i++) {
		if (!is_first(r))
			continue;
		json_key(j, r->path);
		json_object_begin(j);
		for (size_t k = i; (same = route_at(k)); k++)
			if (!same->hidden && strcmp(same->path, r->path) == 0)
				write_operation(j, same);
		json_object_end(j);
	}
	json_object_end(j);
}

static void write_info(struct json *j)
{
	json_key(j, "info");
	json_object_begin(j);
	json_member_str(j, "title", "Caisson");
	json_member_str(j, "summary", "Run code that nobody has read, in sealed sandboxes.");
	json_member_str(
		j, "description",
		"Every error has one shape, `{\"error\": {\"code\", \"message\", \"field\"?, "
		"\"hint\"?}}`. Requests that do not name a session get a sandbox of their own, "
		"which nobody else ever sees.");
	json_member_str(j, "version", CAISSON_VERSION);
	member_raw(j, "license", "{\"name\":\"Apache-2.0\",\"identifier\":\"Apache-2.0\"}");
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
	member_raw(&j, "servers", "[{\"url\":\"/\"}]");
	member_raw(&j, "security", "[{\"bearer\":[]},{\"apiKey\":[]}]");
	json_key(&j, "tags");
	json_array_begin(&j);
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
	/* The table is constant: a document that is not whole is a bug, or no memory for it. */
	if (json_finish(&j) < 0 && !out->err)
		out->err = j.err;
}
