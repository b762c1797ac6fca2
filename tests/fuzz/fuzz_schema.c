/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_schema.c - Request bodies of any bytes.
 *
 * A refused value has one complete, printable error; an accepted one has only declared members of
 * their declared kinds and sizes, is accepted again when it is written out, and is exactly as deep
 * as the scan before the parser reported.
 */
#include <jansson.h>

#include "base/utf8.h"
#include "front/support/schema.h"
#include "fuzz.h"

static bool is_name(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (s[i] < 'a' || s[i] > 'z')
			return false;
	return len > 0;
}

static const char *const modes[] = { "fast", "slow", NULL };
static const struct field fields[] = {
	{ .name = "code", .kind = FIELD_STRING, .required = true, .min = 1, .max = 16 },
	{ .name = "timeout", .kind = FIELD_INTEGER, .min = 1, .max = 120 },
	{ .name = "x", .kind = FIELD_NUMBER, .min = -1, .max = 1 },
	{ .name = "stream", .kind = FIELD_BOOLEAN },
	{ .name = "id", .kind = FIELD_STRING, .pattern = "^[a-z]+$", .check = is_name },
	{ .name = "mode", .kind = FIELD_STRING, .values = modes },
	{ .name = "stdin", .kind = FIELD_STRING, .nul = true },
	{ .name = "env", .kind = FIELD_STRING_MAP, .max = 3 },
	{ 0 },
};

static void check_error(const struct schema_error *e)
{
	require(e->kind == REFUSAL_MALFORMED || e->kind == REFUSAL_INVALID);
	require(e->code && is_name(e->code, strspn(e->code, "abcdefghijklmnopqrstuvwxyz")));
	require(e->message[0] && memchr(e->message, '\0', sizeof(e->message)));
	require(memchr(e->field, '\0', sizeof(e->field)) && memchr(e->hint, '\0', sizeof(e->hint)));
	require(utf8_valid(e->message, strlen(e->message)) &&
		utf8_valid(e->field, strlen(e->field)) && utf8_valid(e->hint, strlen(e->hint)));
}

static unsigned int depth_of(const json_t *v)
{
	unsigned int deepest = 0;
	const char *key;
	json_t *child;
	size_t i;

	if (json_is_array(v))
		json_array_foreach(v, i, child)
		{
			unsigned int d = depth_of(child);

			deepest = d > deepest ? d : deepest;
		}
	json_object_foreach((json_t *)(uintptr_t)v, key, child)
	{
		unsigned int d = depth_of(child);

		deepest = d > deepest ? d : deepest;
	}
	return deepest + (json_is_array(v) || json_is_object(v));
}

static size_t chars(const json_t *s)
{
	size_t n = 0, len = json_string_length(s);

	for (size_t at = 0; at < len; n++) {
		size_t step = utf8_next(json_string_value(s) + at, len - at);

		require(step > 0);
		at += step;
	}
	return n;
}

/* The same questions, asked member by member. */
static void check_object(json_t *o)
{
	json_t *v;
	const char *key;

	require(json_is_string(v = json_object_get(o, "code")) && chars(v) >= 1 && chars(v) <= 16);
	json_object_foreach(o, key, v)
	{
		if (strcmp(key, "timeout") == 0)
			require(json_is_integer(v) && json_integer_value(v) >= 1 &&
				json_integer_value(v) <= 120);
		else if (strcmp(key, "x") == 0)
			require(json_is_number(v) && json_number_value(v) >= -1 &&
				json_number_value(v) <= 1);
		else if (strcmp(key, "stream") == 0)
			require(json_is_boolean(v));
		else if (strcmp(key, "id") == 0)
			require(is_name(json_string_value(v), json_string_length(v)));
		else if (strcmp(key, "mode") == 0)
			require(strcmp(json_string_value(v), "fast") == 0 ||
				strcmp(json_string_value(v), "slow") == 0);
		else if (strcmp(key, "env") == 0)
			require(json_is_object(v) && json_object_size(v) <= 3);
		else
			require(strcmp(key, "code") == 0 || strcmp(key, "stdin") == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct schema_error e = { 0 };
	json_t *any = schema_load(text, size, &e);

	if (!any) {
		check_error(&e);
	} else {
		unsigned int depth = depth_of(any);

		require(depth <= SCHEMA_DEPTH_MAX && schema_depth_ok(text, size, depth));
		require(depth == 0 || !schema_depth_ok(text, size, depth - 1));
		json_decref(any);
	}

	json_t *object = schema_parse(text, size, fields, 0, &e);

	if (!object) {
		check_error(&e);
		return 0;
	}
	require(any != NULL);
	check_object(object);
	char *again = json_dumps(object, 0);
	json_t *second = again ? schema_parse(again, strlen(again), fields, 0, &e) : NULL;

	require(second && json_equal(object, second));
	json_decref(second);
	free(again);
	json_decref(object);
	return 0;
}
