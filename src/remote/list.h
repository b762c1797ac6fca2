/* SPDX-License-Identifier: Apache-2.0 */
/* list.h - Members of the daemon's objects, arrays of them as tables, the caller's sandboxes. */
#ifndef CAISSON_REMOTE_LIST_H
#define CAISSON_REMOTE_LIST_H

#include <jansson.h>
#include <stdint.h>

#include "remote/table.h"

struct session;

/* How a member is written. All but text is aligned to the right. */
enum list_kind {
	LIST_TEXT,
	LIST_NUMBER,
	LIST_SIZE,    /* bytes */
	LIST_MIB,     /* MiB */
	LIST_MS,      /* milliseconds */
	LIST_SECONDS, /* seconds */
	LIST_COUNT,   /* the length of an array */
};

struct list_column {
	const char *title;
	enum list_kind kind;
	const char *key;
	const char *in; /* the member of the row that has the key; NULL: the row itself */
	enum table_style style;
	/* Adds the cell instead; NULL: by kind and key. */
	void (*put)(struct table *t, const json_t *row);
};

/* list_render() - A table with one line per object of @rows. @width: cut lines there; 0: never. */
void list_render(const struct list_column *columns, size_t n, const json_t *rows, size_t width,
		 struct buf *out);
/* list_print() - The same on standard output. */
void list_print(const struct list_column *columns, size_t n, const json_t *rows);
/* list_show() - session_show() that prints the member @key of @v as a table. */
int list_show(const struct session *s, json_t *v, const char *key,
	      const struct list_column *columns, size_t n);

/*
 * list_fetch() - All pages, those with the labels that were asked for; only running ones without
 * --all. A new array, or NULL with s->problem.
 */
json_t *list_fetch(struct session *s);

/* list_put_state() - The state of a sandbox, in its colour. */
void list_put_state(struct table *t, const json_t *sandbox);

/* list_text(), list_uint() - A member; "" and 0 when it is not there or of another kind. */
const char *list_text(const json_t *object, const char *key);
uint64_t list_uint(const json_t *object, const char *key);

#endif
