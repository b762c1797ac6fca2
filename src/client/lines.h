/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lines.h - Lines out of bytes that come in pieces.
 *
 * Empty lines are skipped; a carriage return before the newline is not part of a line. A line has
 * at most LINES_MAX bytes; a longer one ends the reading with -EMSGSIZE, unless lines_limit() was
 * called. Bytes after the last newline are a line only once lines_end() is called.
 */
#ifndef CAISSON_CLIENT_LINES_H
#define CAISSON_CLIENT_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define LINES_MAX (64u << 20)
#define LINES_EDGE 160 /* bytes that are kept of both ends of a line that is too long */

struct lines {
	/* @line ends with NUL, may be written to, and is gone after the call. Anything but 0 ends
	 * the reading. */
	int (*on_line)(void *arg, char *line, size_t len);
	/* A line was longer than the limit, and skipped. NULL: that is an error. */
	int (*on_long)(void *arg, const struct lines *l);
	void *arg;
	struct buf partial; /* the line that is not complete yet; its max is the limit */
	bool skipping;      /* a line that is too long */
	char first[LINES_EDGE], last[LINES_EDGE];
	size_t n_last;
};

void lines_init(struct lines *l, int (*on_line)(void *arg, char *line, size_t len), void *arg);
/* lines_limit() - Skip lines of more than @max bytes; @on_long is called at the end of each. */
void lines_limit(struct lines *l, size_t max, int (*on_long)(void *arg, const struct lines *l));
void lines_free(struct lines *l);

/* lines_feed() - 0, the result of a callback that is not 0, -EMSGSIZE or -ENOMEM. */
int lines_feed(struct lines *l, const char *data, size_t len);

/* lines_end() - The rest is a line too, when there is one. */
int lines_end(struct lines *l);

/*
 * lines_id() - Of a skipped line: the number behind "id": in its last bytes, else in its first; 0:
 * not found. It is the JSON-RPC request that the line probably answers.
 */
uint64_t lines_id(const struct lines *l);

#endif
