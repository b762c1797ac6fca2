/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lines.h - Lines out of bytes that come in pieces, for streams of JSON lines.
 *
 * Empty lines are skipped. A line is at most LINES_MAX bytes long; a longer one ends the reading with
 * -EMSGSIZE. What stands after the last newline is no line until lines_end() says that nothing follows.
 */
#ifndef CAISSON_REMOTE_LINES_H
#define CAISSON_REMOTE_LINES_H

#include <stddef.h>

#include "base/buf.h"

#define LINES_MAX (64u << 20)

struct lines {
	/* @line is NUL-terminated and gone after the call; anything but 0 ends the reading. */
	int (*on_line)(void *arg, const char *line, size_t len);
	void *arg;
	struct buf partial;
};

void lines_init(struct lines *l, int (*on_line)(void *arg, const char *line, size_t len),
		void *arg);
void lines_free(struct lines *l);

/* lines_feed() - 0, what on_line returned, -EMSGSIZE or -ENOMEM. */
int lines_feed(struct lines *l, const char *data, size_t len);

/* lines_end() - The rest is a line too, when there is one. */
int lines_end(struct lines *l);

#endif
