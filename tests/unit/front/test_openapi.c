/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_openapi.c - The document and the table agree, in both directions; every reference leads
 * somewhere, every component is used, and every example is accepted by the check that it explains.
 */
#include "base/buf.h"
#include "base/fd.h"
#include "front/http/docs.h"
#include "front/http/route.h"
#include "front/support/schema.h"

#include <stdio.h>
#include <string.h>

#include "../unit.h"
#include "handlers_kit.h"

static json_t *api;

static int load(void **state)
{
	_buf_ struct buf out = BUF_INIT(1 << 20);
	json_error_t e;

	(void)state;
	field_set_timeouts(30000, 120000);
	openapi_write(&out);
	if (out.err)
		return -1;
	api = json_loadb(out.data, out.len, JSON_REJECT_DUPLICATES, &e);
	return api ? 0 : -1;
}

static int unload(void **state)
{
	(void)state;
	json_decref(api);
	return 0;
}

struct unit_fixture unit_group = { load, unload };

static const char *lower(const char *method)
{
	static char out[16];

	(void)snprintf(out, sizeof(out), "%s", method);
	for (char *s = out; *s; s++)
		*s = (char)(*s | 0x20);
	return out;
}

static json_t *operation(const struct route *r)
{
	return json_object_get(json_object_get(json_object_get(api, "paths"), r->path),
			       lower(r->method));
}

TEST(head)
{
	assert_string_equal(json_string_value(json_object_get(api, "openapi")), "3.1.0");
	json_t *info = json_object_get(api, "info");

	assert_string_equal(json_string_value(json_object_get(info, "version")), CAISSON_VERSION);
	assert_non_null(json_object_get(
		json_object_get(json_object_get(api, "components"), "securitySchemes"), "bearer"));
}

TEST(both_ways)
{
	size_t in_table = 0, in_document = 0;
	const struct route *r;
	const char *path, *method;
	json_t *item, *op;

	for (size_t i = 0; (r = route_at(i)); i++) {
		op = operation(r);
		if (!op != r->hidden)
			fail_msg("%s %s", r->method, r->path);
		if (!op)
			continue;
		in_table++;
		assert_string_equal(json_string_value(json_object_get(op, "operationId")),
				    r->op->name);
		/* Open routes are marked; the others inherit. */
		json_t *security = json_object_get(op, "security");

		assert_int_equal(r->open, security && json_array_size(security) == 0);
		assert_int_equal(route_takes_json(r) || r->content,
				 json_object_get(op, "requestBody") != NULL);
		for (const struct response_doc *d = r->responses; d->status; d++) {
			char status[12];

			(void)snprintf(status, sizeof(status), "%d", d->status);
			assert_non_null(json_object_get(json_object_get(op, "responses"), status));
		}
		assert_non_null(json_object_get(json_object_get(op, "responses"), "421"));
		assert_int_equal(!r->open,
				 json_object_get(json_object_get(op, "responses"), "401") != NULL);
	}
	json_object_foreach(json_object_get(api, "paths"), path, item)
	{
		json_object_foreach(item, method, op)
		{
			struct route_params params;
			char upper[16];
			int status;

			(void)snprintf(upper, sizeof(upper), "%s", method);
			for (char *s = upper; *s; s++)
				*s = (char)(*s & ~0x20);
			assert_non_null(route_find(upper, path, &params, &status, NULL));
			in_document++;
		}
	}
	assert_int_equal(in_table, in_document);
}

/* Visit every "$ref" below @node. */
static void walk(json_t *node, void (*fn)(const char *ref, void *arg), void *arg)
{
	const char *key;
	json_t *child;
	size_t i;

	if (json_is_array(node))
		json_array_foreach(node, i, child) walk(child, fn, arg);
	json_object_foreach(node, key, child)
	{
		if (strcmp(key, "$ref") == 0)
			fn(json_string_value(child), arg);
		else
			walk(child, fn, arg);
	}
}

static void leads_somewhere(const char *ref, void *arg)
{
	json_t *at = api;
	char part[64];

	(void)arg;
	assert_memory_equal(ref, "#/", 2);
	for (ref += 2; *ref; ref += strcspn(ref, "/") + (strchr(ref, '/') != NULL)) {
		(void)snprintf(part, sizeof(part), "%.*s", (int)strcspn(ref, "/"), ref);
		at = json_object_get(at, part);
		if (!at)
			fail_msg("no %s", part);
	}
}

struct wanted {
	const char *ref;
	bool found;
};

static void is_it(const char *ref, void *arg)
{
	struct wanted *w = arg;

	w->found |= strcmp(ref, w->ref) == 0;
}

TEST(references)
{
	static const char *const kinds[] = { "schemas", "responses", "headers" };
	json_t *components = json_object_get(api, "components"), *value;
	const char *name;

	walk(api, leads_somewhere, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		json_object_foreach(json_object_get(components, kinds[i]), name, value)
		{
			char ref[128];
			struct wanted w = { .ref = ref };

			(void)snprintf(ref, sizeof(ref), "#/components/%s/%s", kinds[i], name);
			walk(api, is_it, &w);
			if (!w.found)
				fail_msg("%s is not used", ref);
		}
}

TEST(bodies)
{
	const struct route *r;

	for (size_t i = 0; (r = route_at(i)); i++) {
		struct schema_error e;
		size_t n = 0;

		if (!route_takes_json(r) || r->hidden)
			continue;
		json_t *schema = json_object_get(operation(r), "requestBody");

		schema = json_object_get(json_object_get(schema, "content"), "application/json");
		schema = json_object_get(schema, "schema");
		json_t *examples = json_object(), *defaults = json_object();

		assert_false(json_boolean_value(json_object_get(schema, "additionalProperties")));
		for (const struct field *f = field_from(r->op->fields, IN_BODY); f;
		     f = field_from(f + 1, IN_BODY), n++) {
			json_t *p = json_object_get(json_object_get(schema, "properties"), f->name);
			json_t *example = json_array_get(json_object_get(p, "examples"), 0);
			json_t *fallback = json_object_get(p, "default");

			assert_non_null(p);
			assert_int_equal(!f->example, !example);
			assert_int_equal(!field_fallback(f), !fallback);
			if (example)
				(void)json_object_set(examples, f->name, example);
			if (fallback)
				(void)json_object_set(defaults, f->name, fallback);
			if (f->required)
				(void)json_object_set(defaults, f->name, example);
		}
		assert_int_equal(json_object_size(json_object_get(schema, "properties")), n);
		if (!schema_check(examples, r->op->fields, IN_BODY, &e) ||
		    !schema_check(defaults, r->op->fields, IN_BODY, &e))
			fail_msg("%s: %s", r->path, e.message);
		json_decref(examples);
		json_decref(defaults);
	}
}

/* The interactive page: both forms of it, and nothing but it. */
TEST(docs)
{
	struct docs_asset a;

	assert_true(docs_find("/docs", &a));
	assert_memory_equal(a.data, "<!DOCTYPE html>", 15);
	assert_non_null(strstr(a.policy, "default-src 'none'"));
	assert_non_null(memmem(a.data, a.len,
			       docs_has_swagger() ? "swagger-ui-bundle.js" : "/docs/docs.js", 13));
	assert_int_equal(a.data[a.len], 0);
	assert_true(docs_find("/docs/index.html", &a));
	assert_string_equal(a.content_type, "text/html; charset=utf-8");
	assert_null(strstr(a.policy, "unsafe"));
	/* No script in the page, no address outside: the policy forbids both, and the page knows.
	 */
	assert_null(memmem(a.data, a.len, "http", 4));
	assert_null(memmem(a.data, a.len, "<script>", 8));
	assert_null(memmem(a.data, a.len, "style=", 6));
	assert_null(memmem(a.data, a.len, "onclick", 7));
	assert_true(docs_find("/docs/docs.js", &a));
	assert_string_equal(a.content_type, "text/javascript; charset=utf-8");
	assert_null(memmem(a.data, a.len, "innerHTML", 9));
	assert_null(memmem(a.data, a.len, "Storage", 7));
	assert_null(memmem(a.data, a.len, "://", 3));
	assert_true(docs_find("/docs/docs.css", &a));
	assert_null(a.policy);
	assert_false(docs_find("/docs/", &a));
	assert_false(docs_find("/docs/../docs.c", &a));
	assert_false(docs_find("/docsx", &a));
	assert_false(docs_find("/", &a));
	assert_false(docs_find("", &a));
}

int main(int argc, char **argv)
{
	/* For a linter: the document itself. */
	if (argc > 1 && strcmp(argv[1], "--print") == 0) {
		_buf_ struct buf out = BUF_INIT(1 << 20);

		field_set_timeouts(30000, 120000);
		openapi_write(&out);
		(void)puts(buf_str(&out));
		return out.err;
	}
	return unit_run();
}
