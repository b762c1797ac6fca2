/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_alloc.h - jansson, when there is no memory.
 *
 * Its scanner does not look whether the text it copies had room: when malloc fails it goes on with
 * less, and ends the process by an assertion. So it must not see malloc fail: what is small comes
 * from a reserve then, and for what is large there is a look first.
 */
#ifndef CAISSON_FRONT_JSON_ALLOC_H
#define CAISSON_FRONT_JSON_ALLOC_H

#include <jansson.h>
#include <stddef.h>

/* json_alloc_setup() - Before the first value. */
void json_alloc_setup(void);

/* json_alloc_load() - json_loadb(). Without memory: NULL, and an empty text in @e. @e may be NULL.
 */
json_t *json_alloc_load(const char *text, size_t len, size_t flags, json_error_t *e);

/* json_alloc_free() - What json_dumps() returned; free() would not know it. */
void json_alloc_free(void *p);

struct json;

/* json_member_value() - Write member @key: a value of jansson's; NULL is null. */
void json_member_value(struct json *j, const char *key, const json_t *value);

#endif
