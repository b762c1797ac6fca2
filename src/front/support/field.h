/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field.h - One field of a request: its name, kind and bounds. schema.c checks JSON against a list
 * of them; OpenAPI documents and tool schemas are written from the same list.
 */
#ifndef CAISSON_FRONT_FIELD_H
#define CAISSON_FRONT_FIELD_H

#include <stdbool.h>
#include <stddef.h>

enum field_kind {
	FIELD_STRING,
	FIELD_INTEGER,
	FIELD_NUMBER,
	FIELD_BOOLEAN,
	FIELD_STRING_MAP,
	FIELD_STRING_LIST,
	FIELD_OBJECT, /* the handler looks into it */
	FIELD_TEXT_OR_OBJECT,
};

/* One member of a JSON request body (schema.h checks it) or one query or path parameter. */
struct field {
	const char *name;
	enum field_kind kind;
	bool required;
	bool nul;   /* a string that may hold U+0000 */
	bool bytes; /* of a query: names that are no text, percent-encoded */
	/* Numbers: the value. Strings: characters. Maps and lists: members. Both 0: unbounded. */
	double min, max;
	const char *pattern;                      /* for OpenAPI; `check` enforces it */
	bool (*check)(const char *s, size_t len); /* of a string, or NULL; needs `pattern` */
	const char *const *values;         /* NULL-terminated list of allowed strings, or NULL */
	const char *description, *example; /* example is JSON text */
	const char *fallback;              /* default as JSON text, or NULL */
};

#endif
