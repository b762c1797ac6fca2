/* SPDX-License-Identifier: Apache-2.0 */
/*
 * openapi.c - The table of routes as an OpenAPI 3.1 document.
 *
 * Paths, parameters and request bodies are written from the tables and their fields, the same rows
 * that dispatch and check requests, so that the document cannot promise what the daemon does not
 * do. Fields are written by schema_write.c, responses and codes of errors by openapi_answers.c.
 * What answers look like (components) is a JSON file beside this one, compiled in.
 *
 * A path's operations stand together in the document but not always in the table: a path is written
 * when its first visible row is met, with all rows that share it.
 */
#include <string.h>

#include "base/buf.h"
#include "base/embed.h"
#include "base/fd.h"
#include "base/json.h"
#include "front/http/openapi.h"
#include "front/http/route.h"
#include "front/support/schema.h"

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
	{ "egress", "What a sandbox may reach, by name, and what it has reached." },
	{ "ports", "Services that listen in a sandbox, reached through the daemon." },
	{ "approvals", "Tool calls of code that wait for a person." },
	{ "executions", "What was done in a sandbox lately: results, events, output." },
	{ "packages", "What code can import." },
	{ "workspaces", "Directories that outlive sandboxes." },
	{ "service", "The daemon itself." },
};

static const struct field key_header[] = {
	{ .name = "Idempotency-Key",
	  .kind = FIELD_STRING,
	  .min = 1,
	  .max = 255,
	  .pattern = "^[!-~]+$",
	  .description =
		  "The same request with the same key is answered again, not done again. Kept "
		  "for 24 hours.",
	  .example = "\"order-66\"" },
	{ 0 },
};

/* ---- requests ------------------------------------------------------------------------------ */

static void write_body(struct json *j, const struct route *r)
{
	json_key(j, "requestBody");
	json_object_begin(j);
	json_member_bool(j, "required", schema_any_required(r->body));
	json_key(j, "content");
	json_object_begin(j);
	json_key(j, "application/json");
	json_object_begin(j);
	json_key(j, "schema");
	schema_write(j, r->body, true);
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
	json_member_raw(j, "schema", "{\"type\":\"string\",\"format\":\"binary\"}");
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
		schema_write_field(j, f, false, false);
		if (f->example)
			json_member_raw(j, "example", f->example);
		json_object_end(j);
	}
}

/* ---- the document -------------------------------------------------------------------------- */

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
		json_member_raw(j, "security", "[]");
	if (r->params || r->query || r->headers || r->keyed) {
		json_key(j, "parameters");
		json_array_begin(j);
		write_params(j, r->params, "path");
		write_params(j, r->query, "query");
		write_params(j, r->headers, "header");
		write_params(j, r->keyed ? key_header : NULL, "header");
		json_array_end(j);
	}
	if (r->body)
		write_body(j, r);
	if (r->content)
		write_content_body(j, r);
	openapi_write_responses(j, r);
	openapi_write_errors(j, r);
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
		"\"hint\"?}}`; `x-errors` of an operation has its codes, by status. Beside these, "
		"a request that is no HTTP is answered as HTTP has it (400, 408, 413, 414, 431, "
		"501, 505); 500, 502, 504 and the codes `out_of_memory`, `sandbox_failed` and "
		"`kernel_failed` (503) are faults of the daemon or of its machine, whose log has "
		"the request id. Requests that do not name a session get a sandbox of their own, which nobody "
		"else ever sees.");
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
