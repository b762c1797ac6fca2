/* SPDX-License-Identifier: Apache-2.0 */
/*
 * show.h - Progress: bars on a terminal, lines in a file, events for a program.
 *
 * Bars and lines go to stderr; events are a JSON object per line on stdout.
 */
#ifndef CAISSON_IMAGE_SHOW_H
#define CAISSON_IMAGE_SHOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image/open.h"

enum show_mode { SHOW_LINES, SHOW_BARS, SHOW_EVENTS, SHOW_NOTHING };

enum show_state { SHOW_WAITS, SHOW_LOADS, SHOW_LOADED, SHOW_UNPACKS, SHOW_DONE, SHOW_HERE };

struct show_row {
	const char *digest; /* borrowed */
	enum show_state state;
	uint64_t done, total;
};

struct show {
	enum show_mode mode;
	size_t n;
	struct show_row rows[IMAGE_LAYERS_MAX];
	size_t drawn; /* lines on the terminal */
	uint64_t next_ns;
};

/* show_begin() - @json, @quiet: the command's options; without them stderr decides. */
void show_begin(struct show *s, bool json, bool quiet);

/* show_step() - Progress that belongs to no layer: "pulling", with its text. */
void show_step(struct show *s, const char *event, const char *text);

/* show_add() - One more layer. */
void show_add(struct show *s, const char *digest, uint64_t total);
/* show_plan() - All were added. */
void show_plan(struct show *s);
void show_row(struct show *s, size_t i, enum show_state state, uint64_t done);

/* show_tick() - Draw again, not too often. */
void show_tick(struct show *s);

/* show_end() - The bars stay as they are; further output is below them. */
void show_end(struct show *s);

#endif
