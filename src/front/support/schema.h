/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema.h - A JSON request body against its fields, with errors that name the field and the fix.
 */
#ifndef CAISSON_FRONT_SCHEMA_H
#define CAISSON_FRONT_SCHEMA_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "front/support/field.h"
#include "front/support/refusal.h"

#define SCHEMA_DEPTH_MAX 32
#define SCHEMA_VALUES_MAX 100000 /* a value costs some 50 bytes when parsed, and 2 in the text */

struct schema_error {
	/*
	 * REFUSAL_MALFORMED: malformed_json, duplicate_key, too_deep, too_many_values, and
	 * out_of_range for a number that no JSON reader here can hold. REFUSAL_UNAVAILABLE:
	 * out_of_memory. REFUSAL_INVALID: not_an_object, missing_field, unknown_field, wrong_type,
	 * out_of_range, invalid_value.
	 */
	enum refusal_kind kind;
	const char *code;
	char message[256], field[64], hint[200]; /* valid UTF-8; field and hint may be empty */
};

/* schema_setup() - Before the jail: a random seed for the parser's hash tables. */
void schema_setup(void);

/*
 * schema_parse() - Parse strictly: UTF-8, one document, no trailing bytes, no duplicate keys, no
 * NaN, bounded depth and number of values (checked before jansson sees it), integers in int64,
 * exactly the declared fields and types (an integer field refuses 1.0 and "1"; null is refused
 * where required, and removed where optional, so that it means absent). An empty body is an empty
 * object when no field is required.
 * @fields: ends with name NULL, or is NULL; those in @in (field.h) count.
 * Return: the object (caller decrefs), or NULL with @ret filled.
 */
json_t *schema_parse(const char *body, size_t len, const struct field *fields, unsigned int in,
		     struct schema_error *ret);

/* schema_check() - The second half: an object that is parsed already. Removes optional nulls. */
bool schema_check(json_t *object, const struct field *fields, unsigned int in,
		  struct schema_error *ret);

/*
 * schema_load() - The first half: any JSON value within the bounds above.
 * Return: the value (caller decrefs), or NULL with @ret filled.
 */
json_t *schema_load(const char *text, size_t len, struct schema_error *ret);

/* schema_depth_ok() - Nesting of a text without parsing it. Pure. */
bool schema_depth_ok(const char *text, size_t len, unsigned int max);
/* schema_values_ok() - How many values it has, the same way: one costs some 50 bytes when it is
 * parsed, and two here. */
bool schema_values_ok(const char *text, size_t len, size_t max);

/* schema_ms() - The seconds under @key as milliseconds, rounded up, so that more than nothing stays
 * so. 0: @key is missing. */
uint64_t schema_ms(const json_t *body, const char *key);

#endif
