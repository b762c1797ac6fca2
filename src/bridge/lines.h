/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lines.h - Bytes of a server's output become lines of at most a size.
 *
 * What is longer is passed over up to its end; whose answer it may have been is guessed from its
 * first and last bytes, so that one caller hears of it at once and all others hear nothing.
 */
#ifndef CAISSON_BRIDGE_LINES_H
#define CAISSON_BRIDGE_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define LINES_EDGE 160 /* bytes that are kept of both ends of a line that is too long */

struct lines {
	struct buf text; /* of the line that is not complete yet; its max is the limit */
	bool skipping;
	char first[LINES_EDGE], last[LINES_EDGE];
	size_t n_last;
	/* One line, without its end; may be written to. False: no more, the caller is gone. */
	bool (*on_line)(void *arg, char *text, size_t len);
	/* One was too long. @id: of the request that it may answer, or 0. False: as above. */
	bool (*on_long)(void *arg, uint64_t id);
	void *arg;
};

/* lines_feed() - False when a callback said so; the rest of @data is then not looked at. */
bool lines_feed(struct lines *l, const char *data, size_t len);
void lines_free(struct lines *l);

#endif
