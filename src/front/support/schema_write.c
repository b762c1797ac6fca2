/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema_write.c - The fields of a request as JSON Schema, for clients.
 *
 * Written from the rows that schema.c checks requests against: bounds, values, patterns and
 * defaults are the same. The OpenAPI document (http/openapi.c) and the list of MCP tools contain
 * it.
 */
#include <string.h>

#include "base/json.h"
#include "front/support/schema.h"

static const char *const kind_types[] = {
	[FIELD_STRING] = "string",     [FIELD_INTEGER] = "integer",
	[FIELD_NUMBER] = "number",     [FIELD_BOOLEAN] = "boolean",
	[FIELD_STRING_MAP] = "object", [FIELD_STRING_LIST] = "array",
	[FIELD_OBJECT] = "object",     [FIELD_TEXT_OR_OBJECT] = "string",
};

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
		[FIELD_OBJECT] = { NULL, NULL },
		[FIELD_TEXT_OR_OBJECT] = { "minLength", "maxLength" },
	};
	unsigned int digits = f->kind == FIELD_NUMBER ? 3 : 0;

	if ((f->min == 0 && field_max(f) == 0) || !words[f->kind].min)
		return;
	json_key(j, words[f->kind].min);
	json_double(j, f->min, digits);
	json_key(j, words[f->kind].max);
	json_double(j, field_max(f), digits);
}

/* @words: the description, and the example with it; or NULL. */
static void write_field(struct json *j, const struct field *f, bool nullable, const char *words)
{
	json_object_begin(j);
	json_key(j, "type");
	if (nullable || f->kind == FIELD_TEXT_OR_OBJECT) {
		json_array_begin(j);
		(void)json_str(j, kind_types[f->kind]);
		if (f->kind == FIELD_TEXT_OR_OBJECT)
			(void)json_str(j, "object");
		if (nullable)
			(void)json_str(j, "null");
		json_array_end(j);
	} else {
		(void)json_str(j, kind_types[f->kind]);
	}
	if (words)
		json_member_str(j, "description", words);
	write_bounds(j, f);
	if (f->pattern)
		json_member_str(j, "pattern", f->pattern);
	if (f->values) {
		json_member_array(j, "enum");
		for (size_t i = 0; f->values[i]; i++)
			(void)json_str(j, f->values[i]);
		if (nullable)
			json_none(j);
		json_array_end(j);
	}
	if (f->kind == FIELD_STRING_MAP)
		json_member_raw(j, "additionalProperties", "{\"type\":\"string\"}");
	if (f->kind == FIELD_STRING_LIST)
		json_member_raw(j, "items", "{\"type\":\"string\"}");
	if (field_fallback(f))
		json_member_raw(j, "default", field_fallback(f));
	if (f->example && words) {
		json_member_array(j, "examples");
		json_raw(j, f->example, strlen(f->example));
		json_array_end(j);
	}
	json_object_end(j);
}

void schema_write_type(struct json *j, const struct field *f)
{
	write_field(j, f, false, NULL);
}

bool schema_any_required(const struct field *fields, unsigned int in)
{
	const struct field *f = field_from(fields, in);

	while (f && !f->required)
		f = field_from(f + 1, in);
	return f;
}

void schema_write(struct json *j, const struct field *fields, unsigned int in)
{
	const struct field *f;

	json_object_begin(j);
	json_member_str(j, "type", "object");
	json_member_bool(j, "additionalProperties", false);
	if (schema_any_required(fields, in)) {
		json_member_array(j, "required");
		for (f = field_from(fields, in); f; f = field_from(f + 1, in))
			if (f->required)
				(void)json_str(j, f->name);
		json_array_end(j);
	}
	json_member_object(j, "properties");
	for (f = field_from(fields, in); f; f = field_from(f + 1, in)) {
		bool tool = in == IN_TOOL && f->tool_description;

		json_key(j, f->name);
		write_field(j, f, in == IN_BODY && !f->required,
			    tool ? f->tool_description : f->description);
	}
	json_object_end(j);
	json_object_end(j);
}
