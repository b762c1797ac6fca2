/* SPDX-License-Identifier: Apache-2.0 */
/*
 * displays.h - The displays of an execution, as its result has them: as a notebook shows them at
 * the end. An update replaces the display of its id, and clear_output() removes all of them.
 *
 * Bounded: displays beyond DISPLAYS_MAX, or beyond DISPLAYS_BYTES of JSON, are only counted.
 */
#ifndef CAISSON_FRONT_DISPLAYS_H
#define CAISSON_FRONT_DISPLAYS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct json;

#define DISPLAYS_MAX 64u
#define DISPLAYS_BYTES (32u << 20)

struct display {
	char *json; /* an object */
	size_t len;
	char *id; /* NULL: nothing can replace it */
	bool cut; /* the kernel has left out a part of it */
};

struct displays {
	struct display list[DISPLAYS_MAX];
	size_t n, bytes;
	size_t dropped; /* displays that found no room */
	bool clearing;  /* the next output removes all displays */
};

/*
 * displays_put() - Take one: an object with data, metadata, display_id, update and truncated, as
 * far as the kernel sent them. Return: its size as JSON; 0: there was no room, and it is counted.
 */
size_t displays_put(struct displays *d, const json_t *display);

/* displays_clear() - Remove all of them; @wait: when the next output comes. */
void displays_clear(struct displays *d, bool wait);
/* displays_output() - Output has come. */
void displays_output(struct displays *d);

/* displays_cut() - Whether something of them is left out. */
bool displays_cut(const struct displays *d);
/* displays_json() - Write the member `displays`, and `displays_dropped` if there are any. */
void displays_json(const struct displays *d, struct json *j);
/* displays_load() - An array of them. NULL: no memory. */
json_t *displays_load(const struct displays *d);

#endif
