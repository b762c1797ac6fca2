/* SPDX-License-Identifier: Apache-2.0 */
/*
 * asked.h - Which names a sandbox asked for lately, how often, and whether it may reach them.
 *
 * Bounded: of more names than GATE_NAMES_SHOWN those that nobody asked for the longest are
 * forgotten, so that who asks for many pays with its own list alone. Pure but for memory.
 */
#ifndef CAISSON_GATE_ASKED_H
#define CAISSON_GATE_ASKED_H

#include <stdbool.h>
#include <stddef.h>

#include "wire/gate.h"

struct asked_row;

struct asked {
	struct asked_row *first; /* the last one that was asked for */
	size_t n;
};

/* asked_note() - One question. Without memory for a name that is new, it is not noted. */
void asked_note(struct asked *a, const char *host, bool allowed);

/* asked_show() - The newest first, at most @max; how many. */
size_t asked_show(const struct asked *a, struct gate_name *ret, size_t max);
void asked_free(struct asked *a);

#endif
