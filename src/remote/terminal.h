/* SPDX-License-Identifier: Apache-2.0 */
/* terminal.h - What is only for people who look: colours, progress, text that can do no harm. */
#ifndef CAISSON_REMOTE_TERMINAL_H
#define CAISSON_REMOTE_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* terminal_colour() - Begin (TERMINAL_RED...) or end (TERMINAL_PLAIN) a colour on stdout; nothing
 * is written when that is no terminal, or NO_COLOR is set. */
#define TERMINAL_PLAIN "0"
#define TERMINAL_BOLD "1"
#define TERMINAL_DIM "2"
#define TERMINAL_RED "31"
#define TERMINAL_GREEN "32"
void terminal_colour(const char *colour);

/*
 * terminal_text() - Write @len bytes so that they can not command a terminal: control characters,
 * marks of writing direction and what is not UTF-8 come as \x1b, \u202e. Return: columns, roughly.
 */
size_t terminal_text(FILE *out, const char *s, size_t len);

/* One line on stderr, when that is a terminal and it takes longer than a second. */
struct progress {
	const char *what;
	uint64_t begin_ns, next_ns;
	bool shown;
};

void progress_begin(struct progress *p, const char *what);
void progress_update(struct progress *p, uint64_t done, uint64_t total);
void progress_end(struct progress *p);

#endif
