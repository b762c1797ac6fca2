/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field.c - Lists of the fields of requests: searched, and written as JSON Schema for clients.
 *
 * The JSON Schema is written from the rows that schema.c checks requests against: bounds, values,
 * patterns and defaults are the same. The OpenAPI document (http/openapi.c) and the list of MCP
 * tools contain it.
 */
#include "front/support/field.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"

/* ---- lists of fields ----------------------------------------------------------------------- */

static double timeout_max_s = 120;
static char timeout_fallback[24] = "30"; /* empty: none */

void field_set_timeouts(uint64_t timeout_ms, uint64_t max_timeout_ms)
{
	timeout_max_s = (double)max_timeout_ms / 1000;
	timeout_fallback[0] = '\0';
	if (timeout_ms > 0)
		(void)snprintf(timeout_fallback, sizeof(timeout_fallback), "%.15g",
			       (double)timeout_ms / 1000);
}

double field_max(const struct field *f)
{
	return f->daemon_timeout ? timeout_max_s : f->max;
}

const char *field_fallback(const struct field *f)
{
	if (f->daemon_timeout)
		return timeout_fallback[0] ? timeout_fallback : NULL;
	return f->fallback;
}

const struct field *field_from(const struct field *f, unsigned int in)
{
	while (f && f->name && in && f->in && !(f->in & in))
		f++;
	return f && f->name ? f : NULL;
}

const struct field *field_named(const struct field *fields, unsigned int in, const char *name)
{
	const struct field *f = field_from(fields, in);

	while (f && strcmp(f->name, name) != 0)
		f = field_from(f + 1, in);
	return f;
}

bool fields_required(const struct field *fields, unsigned int in)
{
	const struct field *f = field_from(fields, in);

	while (f && !f->required)
		f = field_from(f + 1, in);
	return f;
}

/* ---- JSON Schema --------------------------------------------------------------------------- */

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

void field_write_type(struct json *j, const struct field *f)
{
	write_field(j, f, false, NULL);
}

void fields_write(struct json *j, const struct field *fields, unsigned int in)
{
	const struct field *f;

	json_object_begin(j);
	json_member_str(j, "type", "object");
	json_member_bool(j, "additionalProperties", false);
	if (fields_required(fields, in)) {
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
