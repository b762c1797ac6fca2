/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema_write.c - The fields of a request as JSON Schema, for those who make requests.
 *
 * Written from the rows that schema.c checks requests against: bounds, values, patterns and
 * defaults are the same ones. Whoever reads it is the OpenAPI document (openapi.c) and the list of
 * MCP tools.
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

	if ((f->min == 0 && f->max == 0) || !words[f->kind].min)
		return;
	json_key(j, words[f->kind].min);
	json_double(j, f->min, digits);
	json_key(j, words[f->kind].max);
	json_double(j, f->max, digits);
}

void schema_write_field(struct json *j, const struct field *f, bool nullable, bool told)
{
	json_object_begin(j);
	json_key(j, "type");
	if ((nullable && !f->required) || f->kind == FIELD_TEXT_OR_OBJECT) {
		json_array_begin(j);
		(void)json_str(j, kind_types[f->kind]);
		if (f->kind == FIELD_TEXT_OR_OBJECT)
			(void)json_str(j, "object");
		if (nullable && !f->required)
			(void)json_str(j, "null");
		json_array_end(j);
	} else {
		(void)json_str(j, kind_types[f->kind]);
	}
	if (f->description && told)
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
		json_member_raw(j, "additionalProperties", "{\"type\":\"string\"}");
	if (f->kind == FIELD_STRING_LIST)
		json_member_raw(j, "items", "{\"type\":\"string\"}");
	if (f->fallback)
		json_member_raw(j, "default", f->fallback);
	if (f->example && told) {
		json_key(j, "examples");
		json_array_begin(j);
		json_raw(j, f->example, strlen(f->example));
		json_array_end(j);
	}
	json_object_end(j);
}

bool schema_any_required(const struct field *f)
{
	while (f->name && !f->required)
		f++;
	return f->name != NULL;
}

void schema_write(struct json *j, const struct field *fields, bool nullable)
{
	json_object_begin(j);
	json_member_str(j, "type", "object");
	json_member_bool(j, "additionalProperties", false);
	if (schema_any_required(fields)) {
		json_key(j, "required");
		json_array_begin(j);
		for (const struct field *f = fields; f->name; f++)
			if (f->required)
				(void)json_str(j, f->name);
		json_array_end(j);
	}
	json_key(j, "properties");
	json_object_begin(j);
	for (const struct field *f = fields; f->name; f++) {
		json_key(j, f->name);
		schema_write_field(j, f, nullable, true);
	}
	json_object_end(j);
	json_object_end(j);
}
