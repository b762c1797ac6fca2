/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field.h - One field of a request: its name, kind, bounds, and the requests that have it.
 *
 * schema.c checks JSON against a list of fields; the OpenAPI document and the schemas of MCP tools
 * are written from the same list. An operation (operation.h) has one list for every wire: `in`
 * tells where a field stands, and a reader of the list skips the fields of other places.
 */
#ifndef CAISSON_FRONT_FIELD_H
#define CAISSON_FRONT_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json;

enum field_kind {
	FIELD_STRING,
	FIELD_INTEGER,
	FIELD_NUMBER,
	FIELD_BOOLEAN,
	FIELD_STRING_MAP,
	FIELD_STRING_LIST,
	FIELD_OBJECT, /* the handler checks its members */
	FIELD_TEXT_OR_OBJECT,
};

enum field_place {
	IN_PATH = 1u << 0,  /* of an HTTP request; in the order of the path */
	IN_QUERY = 1u << 1, /* of an HTTP request */
	IN_BODY = 1u << 2,  /* of an HTTP request, a member of a JSON object */
	IN_TOOL = 1u << 3,  /* argument of an MCP tool */
};

struct field {
	const char *name;
	enum field_kind kind;
	unsigned int in; /* enum field_place; 0: wherever the list is used */
	bool required;
	bool nul;   /* a string that may hold U+0000 */
	bool bytes; /* of a query: any bytes, percent-encoded */
	/* Numbers: the value. Strings: characters. Maps and lists: members. Both 0: unbounded. */
	double min, max;
	const char *pattern;                      /* for OpenAPI; `check` enforces it */
	bool (*check)(const char *s, size_t len); /* of a string, or NULL; needs `pattern` */
	const char *const *values;         /* NULL-terminated list of allowed strings, or NULL */
	const char *description, *example; /* example is JSON text */
	const char *fallback;              /* default as JSON text, or NULL */
	const char *tool_description;      /* for tools, where they need other words; or NULL */
	bool daemon_timeout; /* largest value and default are the daemon's: field_set_timeouts() */
};

/* One field of a list; further members follow the text: .required = true, .example = "7". */
#define FIELD(in_, kind_, name_, min_, max_, text_, ...)                                           \
	{                                                                                          \
		.name = (name_), .kind = FIELD_##kind_, .in = (in_), .min = (min_), .max = (max_), \
		.description = (text_), __VA_ARGS__                                                \
	}
#define FLAG_FIELD(in_, name_, fallback_, text_, ...)                                              \
	FIELD(in_, BOOLEAN, name_, 0, 0, text_, .fallback = (fallback_), __VA_ARGS__)
#define FIELDS(...) ((const struct field[]){ __VA_ARGS__, { 0 } })

/* field_from() - The first field from @f on that stands in one of the places @in (0: any), or NULL.
 * @f may be NULL. */
const struct field *field_from(const struct field *f, unsigned int in);
/* field_named() - The field of this name among those in @in, or NULL. */
const struct field *field_named(const struct field *fields, unsigned int in, const char *name);

/* field_set_timeouts() - The daemon's limits, before the first request. 0: no default. */
void field_set_timeouts(uint64_t timeout_ms, uint64_t max_timeout_ms);
double field_max(const struct field *f);
const char *field_fallback(const struct field *f);

bool fields_required(const struct field *fields, unsigned int in); /* any of them */
/*
 * fields_write() - JSON Schema of an object with the fields in @in. Optional members of a body may
 * be null, which means absent; tools are described without that.
 */
void fields_write(struct json *j, const struct field *fields, unsigned int in);
/* field_write_type() - Type, bounds, values and default of one field, without its words. */
void field_write_type(struct json *j, const struct field *f);

#endif
