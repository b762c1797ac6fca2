/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chunks.h - The framing of a chunked body, checked before the parser sees it.
 *
 * The counterpart of prescan.h for the body: it finds the end of the body, so that the parser never
 * sees a byte of the next request, and refuses framing that parsers disagree about. A chunk line is
 * 1*HEXDIG, optionally extensions (;name, ;name=value, ;name="value", no spaces), CRLF, at most
 * CHUNK_LINE_MAX bytes in all. Extensions are ignored; long and malformed ones are refused.
 * Trailers are refused (400). A body over its maximum is refused (413) when the chunk is announced,
 * not when it has arrived.
 *
 * Pure, incremental and bounded, like prescan.h.
 */
#ifndef CAISSON_NET_CHUNKS_H
#define CAISSON_NET_CHUNKS_H

#include <stddef.h>
#include <stdint.h>

#define CHUNK_LINE_MAX 256

enum chunks_result { CHUNKS_MORE, CHUNKS_DONE, CHUNKS_BAD };

struct chunks {
	int status; /* of CHUNKS_BAD: 400, 413 */
	const char *message;
	uint64_t total; /* bytes announced so far, at most max */

	uint64_t max, size; /* of the body; the rest of the chunk */
	unsigned int state, line;
};

void chunks_init(struct chunks *c, uint64_t body_max);

/* chunks_feed() - As prescan_feed(). After CHUNKS_BAD the bytes need no parsing. */
enum chunks_result chunks_feed(struct chunks *c, const char *data, size_t len, size_t *ret_used);

#endif
