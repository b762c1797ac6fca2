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
#include "front/support/json_alloc.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/buf.h"
#include "base/utf8.h"

void schema_setup(void)
{
	size_t seed = 0;

	json_alloc_setup();
	(void)!getrandom(&seed, sizeof(seed), 0);
	json_object_seed(seed ? seed : 1);
}

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

static void parser_error(const json_error_t *j, struct schema_error *e)
{
	/* Whenever the text is at fault jansson says what is wrong with it. */
	switch (j->text[0] ? json_error_code(j) : json_error_out_of_memory) {
	case json_error_duplicate_key:
		(void)fail(e, REFUSAL_MALFORMED, "duplicate_key", NULL,
			   "a member occurs twice, at line %d column %d", j->line, j->column);
		hint(e, "each name may occur once in an object");
		break;
	case json_error_numeric_overflow:
		(void)fail(e, REFUSAL_MALFORMED, "out_of_range", NULL,
			   "a number is too large, at line %d column %d", j->line, j->column);
		hint(e, "integers have at most 64 bits");
		break;
	case json_error_end_of_input_expected:
		(void)fail(e, REFUSAL_MALFORMED, "malformed_json", NULL,
			   "something follows the JSON value, at line %d column %d", j->line,
			   j->column);
		hint(e, "send one JSON object and nothing else");
		break;
	case json_error_out_of_memory:
		(void)fail(e, REFUSAL_UNAVAILABLE, "out_of_memory", NULL,
			   "the daemon is out of memory");
		break;
	case json_error_premature_end_of_input:
		(void)fail(e, REFUSAL_MALFORMED, "malformed_json", NULL,
			   "the JSON text ends too early");
		hint(e, "a quote, bracket or brace is not closed");
		break;
	default:
		(void)fail(e, REFUSAL_MALFORMED, "malformed_json", NULL,
			   "not JSON, at line %d column %d", j->line, j->column);
		hint(e,
		     "names and strings stand in double quotes, and line breaks in them are \\n");
		break;
	}
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

static const char *type_name(const json_t *v)
{
	switch (json_typeof(v)) {
	case JSON_OBJECT:
		return "an object";
	case JSON_ARRAY:
		return "an array";
	case JSON_STRING:
		return "a string";
	case JSON_INTEGER:
		return "an integer";
	case JSON_REAL:
		return "a number with a fraction";
	case JSON_TRUE:
	case JSON_FALSE:
		return "a boolean";
	case JSON_NULL:
		break;
	}
	return "null";
}

static bool type_fits(const json_t *v, enum field_kind kind)
{
	switch (kind) {
	case FIELD_STRING:
		return json_is_string(v);
	case FIELD_INTEGER:
		return json_is_integer(v);
	case FIELD_NUMBER:
		return json_is_number(v);
	case FIELD_BOOLEAN:
		return json_is_boolean(v);
	case FIELD_STRING_MAP:
		return json_is_object(v);
	case FIELD_STRING_LIST:
		return json_is_array(v);
	case FIELD_OBJECT:
		return json_is_object(v);
	case FIELD_TEXT_OR_OBJECT:
		return json_is_object(v) || json_is_string(v);
	}
	return false;
}

static const char *const kind_names[] = {
	[FIELD_STRING] = "a string",
	[FIELD_INTEGER] = "an integer",
	[FIELD_NUMBER] = "a number",
	[FIELD_BOOLEAN] = "true or false",
	[FIELD_STRING_MAP] = "an object of strings",
	[FIELD_STRING_LIST] = "an array of strings",
	[FIELD_OBJECT] = "an object",
	[FIELD_TEXT_OR_OBJECT] = "a string or an object",
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

	if (bounded(f) && ((double)chars < f->min || (double)chars > f->max)) {
		(void)fail(e, REFUSAL_INVALID, "out_of_range", f->name,
			   "'%s' has %zu characters, and must have %.0f to %.0f", f->name, chars,
			   f->min, f->max);
		return false;
	}
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
				   "'%s' is none of its values", f->name);
			for (n = 0; f->values[n]; n++)
				(void)buf_printf(&list, "%s%s", n ? ", " : "", f->values[n]);
			hint(e, "one of: %s", buf_str(&list));
			return false;
		}
	}
	if (f->check && !f->check(s, len)) {
		(void)fail(e, REFUSAL_INVALID, "invalid_value", f->name,
			   "'%s' has not the form it must have", f->name);
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
	return false;
}

static bool check_map(json_t *v, const struct field *f, struct schema_error *e)
{
	const char *key;
	json_t *member;

	if (bounded(f) &&
	    ((double)json_object_size(v) < f->min || (double)json_object_size(v) > f->max))
		return fail(e, REFUSAL_INVALID, "out_of_range", f->name,
			    "'%s' must have %.0f to %.0f members", f->name, f->min, f->max);
	json_object_foreach(v, key, member)
	{
		if (!json_is_string(member)) {
			char name[sizeof(e->field)];

			copy_text(name, sizeof(name), key, strlen(key));
			return fail(e, REFUSAL_INVALID, "wrong_type", f->name,
				    "the members of '%s' must be strings, and '%s' is %s", f->name,
				    name, type_name(member));
		}
		if (strlen(json_string_value(member)) != json_string_length(member))
			return fail(e, REFUSAL_INVALID, "invalid_value", f->name,
				    "'%s' holds a NUL character", f->name);
	}
	return true;
}

static bool check_list(const json_t *v, const struct field *f, struct schema_error *e)
{
	size_t n = json_array_size(v);

	if (bounded(f) && ((double)n < f->min || (double)n > f->max))
		return fail(e, REFUSAL_INVALID, "out_of_range", f->name,
			    "'%s' must have %.0f to %.0f members", f->name, f->min, f->max);
	for (size_t i = 0; i < n; i++) {
		const json_t *member = json_array_get(v, i);

		if (!json_is_string(member))
			return fail(e, REFUSAL_INVALID, "wrong_type", f->name,
				    "the members of '%s' must be strings, and number %zu is %s",
				    f->name, i + 1, type_name(member));
		if (!f->nul && strlen(json_string_value(member)) != json_string_length(member))
			return fail(e, REFUSAL_INVALID, "invalid_value", f->name,
				    "'%s' holds a NUL character", f->name);
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
	if (!type_fits(v, f->kind)) {
		(void)fail(e, REFUSAL_INVALID, "wrong_type", f->name, "'%s' must be %s, not %s",
			   f->name, kind_names[f->kind], type_name(v));
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
	if (!json_is_object(object)) {
		(void)fail(ret, REFUSAL_INVALID, "not_an_object", NULL,
			   "the body must be a JSON object, not %s", type_name(object));
		return false;
	}
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

	if (len == 0 && !schema_any_required(fields, in)) {
		object = json_object();
		if (!object)
			(void)fail(ret, REFUSAL_UNAVAILABLE, "out_of_memory", NULL,
				   "the daemon is out of memory");
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
