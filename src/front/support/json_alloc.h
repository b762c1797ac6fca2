/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_alloc.h - jansson without memory.
 *
 * Its scanner does not check whether there was room for the text that it copies: when malloc fails
 * it goes on with less, and an assertion ends the process. So jansson must not see malloc fail:
 * small requests come from a reserve then, and before a large text is parsed the memory is tried.
 */
#ifndef CAISSON_FRONT_JSON_ALLOC_H
#define CAISSON_FRONT_JSON_ALLOC_H

#include <jansson.h>
#include <stddef.h>

/* json_alloc_setup() - Before the first value. */
void json_alloc_setup(void);

/* json_alloc_load() - json_loadb(), which also refuses every NUL byte. Without memory: NULL, and an
 * empty text in @e. @e may be NULL. */
json_t *json_alloc_load(const char *text, size_t len, size_t flags, json_error_t *e);

/* json_alloc_free() - Free a text of json_dumps(), which free() cannot. */
void json_alloc_free(void *p);

struct buf;
struct json;

/* json_alloc_dump() - Append @v as text; on failure @out->err is set. */
void json_alloc_dump(struct buf *out, const json_t *v);

/* json_member_value() - Write member @key: a value of jansson's; NULL is null. */
void json_member_value(struct json *j, const char *key, const json_t *value);
/* json_member_list() - Write member @key: an array of strings; NULL is an empty one. */
void json_member_list(struct json *j, const char *key, const json_t *list);

#endif
