/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spare.h - jansson, when there is no memory.
 *
 * Its scanner does not look whether the text it copies had room: when malloc fails it goes on with less, and ends
 * the process by an assertion. So it must not see malloc fail: what is small comes from a reserve then, and
 * for what is large there is a look first.
 */
#ifndef CAISSON_FRONT_SPARE_H
#define CAISSON_FRONT_SPARE_H

#include <jansson.h>
#include <stddef.h>

/* spare_setup() - Before the first value. */
void spare_setup(void);

/* spare_load() - json_loadb(). Without memory: NULL, and an empty text in @e. @e may be NULL. */
json_t *spare_load(const char *text, size_t len, size_t flags, json_error_t *e);

/* spare_free() - What json_dumps() returned; free() would not know it. */
void spare_free(void *p);

#endif
