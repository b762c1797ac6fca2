/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lines.h - Lines out of bytes that come in pieces, for streams of JSON lines.
 *
 * Empty lines are skipped. A line is at most LINES_MAX bytes long; a longer one ends the reading
 * with -EMSGSIZE, unless lines_limit() said otherwise. What stands after the last newline is no
 * line until lines_end() says that nothing follows.
 */
#ifndef CAISSON_REMOTE_LINES_H
#define CAISSON_REMOTE_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#define LINES_MAX (64u << 20)

struct lines {
	/* @line is NUL-terminated and gone after the call; anything but 0 ends the reading. */
	int (*on_line)(void *arg, const char *line, size_t len);
	void *arg;
	struct buf partial;
	int (*on_long)(void *arg); /* NULL: too long a line is an error */
	bool skipping;             /* the rest of one */
};

void lines_init(struct lines *l, int (*on_line)(void *arg, const char *line, size_t len),
		void *arg);
/* lines_limit() - Skip lines of more than @max bytes; @on_long is called once for each, instead. */
void lines_limit(struct lines *l, size_t max, int (*on_long)(void *arg));
void lines_free(struct lines *l);

/* lines_feed() - 0, what on_line returned, -EMSGSIZE or -ENOMEM. */
int lines_feed(struct lines *l, const char *data, size_t len);

/* lines_end() - The rest is a line too, when there is one. */
int lines_end(struct lines *l);

#endif
