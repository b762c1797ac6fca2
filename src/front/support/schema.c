/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema.c - Strict JSON in, checked fields out.
 *
 * Three steps. A scan over the raw text bounds depth and number of values, so that a body of a few
 * megabytes cannot become a tree of hundreds (each value is an allocation) or a deep recursion.
 * jansson parses. The fields of the table are compared with what there is, in the table's order,
 * unknown members first: a misspelt name is more helpful than "missing" for the right one.
 *
 * Messages quote what the client sent only where it is short and helps; the JSON writer escapes it.
 */
#include "front/support/schema.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/utf8.h"
#include "front/support/json_alloc.h"

void schema_setup(void)
{
	size_t seed = 0;

	json_alloc_setup();
	(void)!getrandom(&seed, sizeof(seed), 0);
	json_object_seed(seed ? seed : 1);
}

/* ---- errors -------------------------------------------------------------------------------- */

static void copy_text(char *to, size_t size, const char *s, size_t len)
{
	size_t n = 0;

	while (n < len) {
		size_t step = utf8_next(s + n, len - n);

		if (step == 0 || n + step >= size)
			break;
		n += step;
	}
	memcpy(to, s, n);
	to[n] = '\0';
}

static bool fail(struct schema_error *e, enum refusal_kind kind, const char *code,
		 const char *field, const char *fmt, ...) __attribute__((format(printf, 5, 6)));
static bool fail(struct schema_error *e, enum refusal_kind kind, const char *code,
		 const char *field, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	*e = (struct schema_error){ .kind = kind, .code = code };
	copy_text(e->message, sizeof(e->message), text, strlen(text));
	if (field)
		copy_text(e->field, sizeof(e->field), field, strlen(field));
	return false;
}

static void hint(struct schema_error *e, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static void hint(struct schema_error *e, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	copy_text(e->hint, sizeof(e->hint), text, strlen(text));
}

/* ---- the text ------------------------------------------------------------------------------ */

struct shape {
	unsigned int depth;
	size_t values; /* no fewer than there are */
};

/* Brackets and commas outside of strings. The parser refuses text that is no JSON. */
static struct shape scan(const char *s, size_t len, unsigned int max_depth)
{
	struct shape shape = { .values = 1 };
	unsigned int depth = 0;
	bool quoted = false;

	for (size_t i = 0; i < len && shape.depth <= max_depth; i++) {
		if (quoted) {
			if (s[i] == '\\')
				i++;
			else if (s[i] == '"')
				quoted = false;
			continue;
		}
		switch (s[i]) {
		case '"':
			quoted = true;
			break;
		case '[':
		case '{':
			shape.values++;
			if (++depth > shape.depth)
				shape.depth = depth;
			break;
		case ']':
		case '}':
			depth -= depth > 0;
			break;
		case ',':
			shape.values++;
			break;
		}
	}
	return shape;
}

bool schema_depth_ok(const char *text, size_t len, unsigned int max)
{
	return scan(text, len, max).depth <= max;
}

bool schema_values_ok(const char *text, size_t len, size_t max)
{
	return scan(text, len, UINT_MAX).values <= max;
}

/* Faults of a text, as jansson names them; the last row is for all others. */
static const struct {
	enum json_error_code fault;
	const char *code, *message;
	bool placed; /* the message tells where the fault is */
	const char *hint;
} faults[] = {
	{ json_error_duplicate_key, "duplicate_key", "a member occurs twice", true,
	  "each name may occur once in an object" },
	{ json_error_numeric_overflow, "out_of_range", "a number is too large", true,
	  "integers have at most 64 bits" },
	{ json_error_end_of_input_expected, "malformed_json", "something follows the JSON value",
	  true, "send one JSON object and nothing else" },
	{ json_error_premature_end_of_input, "malformed_json", "the JSON text ends too early",
	  false, "a quote, bracket or brace is not closed" },
	{ json_error_unknown, "malformed_json", "not JSON", true,
	  "names and strings stand in double quotes, and line breaks in them are \\n" },
};

static bool no_memory(struct schema_error *e)
{
	return fail(e, REFUSAL_UNAVAILABLE, "out_of_memory", NULL, "the daemon is out of memory");
}

static void parser_error(const json_error_t *j, struct schema_error *e)
{
	char place[64] = "";
	size_t i = 0;

	/* Whenever the text is at fault jansson says what is wrong with it. */
	if (!j->text[0] || json_error_code(j) == json_error_out_of_memory) {
		(void)no_memory(e);
		return;
	}
	while (i + 1 < ARRAY_SIZE(faults) && faults[i].fault != json_error_code(j))
		i++;
	if (faults[i].placed)
		(void)snprintf(place, sizeof(place), ", at line %d column %d", j->line, j->column);
	(void)fail(e, REFUSAL_MALFORMED, faults[i].code, NULL, "%s%s", faults[i].message, place);
	hint(e, "%s", faults[i].hint);
}

json_t *schema_load(const char *text, size_t len, struct schema_error *ret)
{
	struct shape shape = scan(text, len, SCHEMA_DEPTH_MAX);
	json_error_t error;

	if (!utf8_valid(text, len)) {
		(void)fail(ret, REFUSAL_MALFORMED, "malformed_json", NULL,
			   "the text is not valid UTF-8");
		return NULL;
	}
	if (shape.depth > SCHEMA_DEPTH_MAX) {
		(void)fail(ret, REFUSAL_MALFORMED, "too_deep", NULL, "nested more than %d deep",
			   SCHEMA_DEPTH_MAX);
		return NULL;
	}
	if (shape.values > SCHEMA_VALUES_MAX) {
		(void)fail(ret, REFUSAL_MALFORMED, "too_many_values", NULL, "more than %d values",
			   SCHEMA_VALUES_MAX);
		return NULL;
	}
	json_t *value = json_alloc_load(
		text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);

	if (!value)
		parser_error(&error, ret);
	return value;
}

/* ---- the fields ---------------------------------------------------------------------------- */

static const char *const type_names[] = {
	[JSON_OBJECT] = "an object",
	[JSON_ARRAY] = "an array",
	[JSON_STRING] = "a string",
	[JSON_INTEGER] = "an integer",
	[JSON_REAL] = "a number with a fraction",
	[JSON_TRUE] = "a boolean",
	[JSON_FALSE] = "a boolean",
	[JSON_NULL] = "null",
};

static const char *type_name(const json_t *v)
{
	return type_names[json_typeof(v)];
}

#define TYPE(name_) (1u << JSON_##name_)

static const struct {
	const char *name;
	unsigned int types; /* of JSON values */
} kinds[] = {
	[FIELD_STRING] = { "a string", TYPE(STRING) },
	[FIELD_INTEGER] = { "an integer", TYPE(INTEGER) },
	[FIELD_NUMBER] = { "a number", TYPE(INTEGER) | TYPE(REAL) },
	[FIELD_BOOLEAN] = { "true or false", TYPE(TRUE) | TYPE(FALSE) },
	[FIELD_STRING_MAP] = { "an object of strings", TYPE(OBJECT) },
	[FIELD_STRING_LIST] = { "an array of strings", TYPE(ARRAY) },
	[FIELD_OBJECT] = { "an object", TYPE(OBJECT) },
	[FIELD_TEXT_OR_OBJECT] = { "a string or an object", TYPE(STRING) | TYPE(OBJECT) },
};

static bool bounded(const struct field *f)
{
	return f->min != 0 || field_max(f) != 0;
}

static size_t count_chars(const char *s, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += ((unsigned char)s[i] & 0xc0) != 0x80;
	return n;
}

static bool check_string(const json_t *v, const struct field *f, struct schema_error *e)
{
	const char *s = json_string_value(v);
	size_t len = json_string_length(v), chars = count_chars(s, len);

	if (bounded(f) && ((double)chars < f->min || (double)chars > f->max))
		return fail(e, REFUSAL_INVALID, "out_of_range", f->name,
			    "'%s' has %zu characters, and must have %.0f to %.0f", f->name, chars,
			    f->min, f->max);
	if (!f->nul && memchr(s, '\0', len))
		return fail(e, REFUSAL_INVALID, "invalid_value", f->name,
			    "'%s' holds a NUL character", f->name);
	if (f->values) {
		size_t n = 0;

		while (f->values[n] && strcmp(f->values[n], s) != 0)
			n++;
		if (!f->values[n]) {
			_buf_ struct buf list = BUF_INIT(sizeof(e->hint));

			(void)fail(e, REFUSAL_INVALID, "invalid_value", f->name,
				   "'%s' has an invalid value", f->name);
			for (n = 0; f->values[n]; n++)
				(void)buf_printf(&list, "%s%s", n ? ", " : "", f->values[n]);
			hint(e, "one of: %s", buf_str(&list));
			return false;
		}
	}
	if (f->check && !f->check(s, len)) {
		(void)fail(e, REFUSAL_INVALID, "invalid_value", f->name,
			   "'%s' has an invalid format", f->name);
		hint(e, "it must match %s", f->pattern);
		return false;
	}
	return true;
}

static bool check_number(const json_t *v, const struct field *f, struct schema_error *e)
{
	double n = json_number_value(v);

	if (!bounded(f) || (n >= f->min && n <= field_max(f)))
		return true;
	(void)fail(e, REFUSAL_INVALID, "out_of_range", f->name,
		   "'%s' must be between %.15g and %.15g", f->name, f->min, field_max(f));
	if (f->daemon_timeout && n > f->min)
		hint(e, "do less at once; the operator of the daemon sets the longest time "
			"(--max-timeout)");
	return false;
}

static bool check_size(size_t n, const struct field *f, struct schema_error *e)
{
	if (!bounded(f) || ((double)n >= f->min && (double)n <= f->max))
		return true;
	return fail(e, REFUSAL_INVALID, "out_of_range", f->name,
		    "'%s' must have %.0f to %.0f members", f->name, f->min, f->max);
}

/* @name: of a member that is no string, for the message. */
static bool check_member(const json_t *member, const char *name, bool nul, const struct field *f,
			 struct schema_error *e)
{
	if (!json_is_string(member))
		return fail(e, REFUSAL_INVALID, "wrong_type", f->name,
			    "the members of '%s' must be strings, and %s is %s", f->name, name,
			    type_name(member));
	if (!nul && strlen(json_string_value(member)) != json_string_length(member))
		return fail(e, REFUSAL_INVALID, "invalid_value", f->name,
			    "'%s' holds a NUL character", f->name);
	return true;
}

static bool check_map(json_t *v, const struct field *f, struct schema_error *e)
{
	const char *key;
	json_t *member;

	if (!check_size(json_object_size(v), f, e))
		return false;
	json_object_foreach(v, key, member)
	{
		char text[sizeof(e->field)], name[sizeof(e->field) + 2];

		copy_text(text, sizeof(text), key, strlen(key));
		(void)snprintf(name, sizeof(name), "'%s'", text);
		if (!check_member(member, name, false, f, e))
			return false;
	}
	return true;
}

static bool check_list(const json_t *v, const struct field *f, struct schema_error *e)
{
	if (!check_size(json_array_size(v), f, e))
		return false;
	for (size_t i = 0; i < json_array_size(v); i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "number %zu", i + 1);
		if (!check_member(json_array_get(v, i), name, f->nul, f, e))
			return false;
	}
	return true;
}

static bool check_field(json_t *object, const struct field *f, struct schema_error *e)
{
	json_t *v = json_object_get(object, f->name);

	if (json_is_null(v) && !f->required) {
		(void)json_object_del(object, f->name);
		return true;
	}
	if (!v) {
		if (!f->required)
			return true;
		(void)fail(e, REFUSAL_INVALID, "missing_field", f->name, "'%s' is missing",
			   f->name);
		if (f->example)
			hint(e, "as in {\"%s\": %s}", f->name, f->example);
		return false;
	}
	if (!(kinds[f->kind].types & 1u << json_typeof(v))) {
		(void)fail(e, REFUSAL_INVALID, "wrong_type", f->name, "'%s' must be %s, not %s",
			   f->name, kinds[f->kind].name, type_name(v));
		if (f->example)
			hint(e, "as in {\"%s\": %s}", f->name, f->example);
		return false;
	}
	switch (f->kind) {
	case FIELD_STRING:
		return check_string(v, f, e);
	case FIELD_INTEGER:
	case FIELD_NUMBER:
		return check_number(v, f, e);
	case FIELD_STRING_MAP:
		return check_map(v, f, e);
	case FIELD_STRING_LIST:
		return check_list(v, f, e);
	case FIELD_TEXT_OR_OBJECT:
		return json_is_object(v) || check_string(v, f, e);
	case FIELD_BOOLEAN:
	case FIELD_OBJECT:
		break;
	}
	return true;
}

static bool check_unknown(json_t *object, const struct field *fields, unsigned int in,
			  struct schema_error *e)
{
	const char *key;
	json_t *value;

	json_object_foreach(object, key, value)
	{
		if (field_named(fields, in, key))
			continue;

		_buf_ struct buf list = BUF_INIT(sizeof(e->hint));
		char name[sizeof(e->field)];

		copy_text(name, sizeof(name), key, strlen(key));
		(void)fail(e, REFUSAL_INVALID, "unknown_field", name,
			   "'%s' is not a field of this request", name);
		for (const struct field *f = field_from(fields, in); f; f = field_from(f + 1, in))
			(void)buf_printf(&list, "%s%s", list.len ? ", " : "", f->name);
		if (list.len)
			hint(e, "there are: %s", buf_str(&list));
		return false;
	}
	return true;
}

bool schema_check(json_t *object, const struct field *fields, unsigned int in,
		  struct schema_error *ret)
{
	if (!json_is_object(object))
		return fail(ret, REFUSAL_INVALID, "not_an_object", NULL,
			    "the body must be a JSON object, not %s", type_name(object));
	if (!check_unknown(object, fields, in, ret))
		return false;
	for (const struct field *f = field_from(fields, in); f; f = field_from(f + 1, in))
		if (!check_field(object, f, ret))
			return false;
	return true;
}

json_t *schema_parse(const char *body, size_t len, const struct field *fields, unsigned int in,
		     struct schema_error *ret)
{
	json_t *object;

	if (len == 0 && !fields_required(fields, in)) {
		object = json_object();
		if (!object)
			(void)no_memory(ret);
		return object;
	}
	if (len == 0) {
		(void)fail(ret, REFUSAL_MALFORMED, "malformed_json", NULL, "the body is empty");
		hint(ret, "send a JSON object");
		return NULL;
	}
	object = schema_load(body, len, ret);
	if (object && !schema_check(object, fields, in, ret)) {
		json_decref(object);
		object = NULL;
	}
	return object;
}

uint64_t schema_ms(const json_t *body, const char *key)
{
	double seconds = json_number_value(json_object_get(body, key));

	/* Less than a microsecond is what a decimal fraction loses as a binary one. */
	return seconds > 0 ? (uint64_t)(seconds * 1000 + 0.999) : 0;
}
