/* SPDX-License-Identifier: Apache-2.0 */
/* list.h - The caller's sandboxes, and how one of them is told in a few words. */
#ifndef CAISSON_REMOTE_LIST_H
#define CAISSON_REMOTE_LIST_H

#include <jansson.h>
#include <stdint.h>

#include "remote/table.h"

struct session;

/*
 * list_fetch() - All pages, those with the labels that were asked for; only running ones without
 * --all. A new array, or NULL with s->problem.
 */
json_t *list_fetch(struct session *s);

/* list_style() - Of a state. */
enum table_style list_style(const char *state);

/* list_text(), list_uint() - A member; "" and 0 when it is not there or of another kind. */
const char *list_text(const json_t *object, const char *key);
uint64_t list_uint(const json_t *object, const char *key);

#endif
