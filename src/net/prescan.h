/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prescan.h - The raw bytes of a request head, checked before the parser sees them.
 *
 * Requests are smuggled when two parsers read one head differently. This scanner accepts a subset
 * of HTTP/1.x on which all parsers agree, and names the problem of what it refuses; only then
 * llhttp parses, and has to find the same end of the body as this scanner.
 *
 * Refused, 400 unless noted: bare CR, bare LF, NUL and other control bytes (but tab in a value), a
 * line that begins with space or tab, space before the colon, an empty or non-token name, no Host
 * or more than one (HTTP/1.1), more than one Content-Length (even equal), Content-Length beside
 * Transfer-Encoding, one that is not 1*DIGIT or does not fit int64, Transfer-Encoding in HTTP/1.0
 * or other than `chunked` (501 when it is one unknown coding), more than PRESCAN_HEADERS_MAX
 * headers (431), a head over its maximum (431), a target over its maximum (414), a version other
 * than 1.0 and 1.1 (505). One empty line before the request line is skipped, as RFC 9112 asks.
 *
 * Pure, incremental and bounded: any split of the same bytes gives the same verdict at the same
 * byte.
 */
#ifndef CAISSON_NET_PRESCAN_H
#define CAISSON_NET_PRESCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PRESCAN_HEADERS_MAX 100
#define PRESCAN_METHOD_MAX 24

enum prescan_result {
	PRESCAN_MORE, /* all bytes are taken, and the head is incomplete */
	PRESCAN_DONE, /* the head ends after head_len bytes */
	PRESCAN_BAD,  /* status and message say why */
};

struct prescan {
	/* The meaning of PRESCAN_BAD. The message is static. */
	int status;
	const char *message;

	/* The results of PRESCAN_DONE. */
	size_t head_len; /* bytes taken so far; with the empty line at the end */
	size_t skipped;  /* of these, an empty line before the request line: 0 or 2 */
	size_t target_len;
	unsigned int n_headers;
	unsigned int minor; /* HTTP/1.minor */
	bool has_length, chunked;
	int64_t length; /* Content-Length */

	/* The machine; see prescan.c. */
	size_t head_max, target_max;
	unsigned int state, kind, value, at, hosts;
	char word[20]; /* the version, or the beginning of a name in lower case */
};

void prescan_init(struct prescan *p, size_t head_max, size_t target_max);

/*
 * prescan_feed() - Take more bytes.
 * @ret_used: how many were taken: all of them with PRESCAN_MORE, up to the end of the head with
 *            PRESCAN_DONE. After DONE or BAD no more are taken and the result stays.
 */
enum prescan_result prescan_feed(struct prescan *p, const char *data, size_t len, size_t *ret_used);

/* ---- the framing of a chunked body: chunks.c ------------------------------------------------ */

#define CHUNK_LINE_MAX 256
#define CHUNK_TRAILERS_MAX 8192

enum chunks_result { CHUNKS_MORE, CHUNKS_DONE, CHUNKS_BAD };

struct chunks {
	int status; /* of CHUNKS_BAD: 400, 413, 431 */
	const char *message;
	uint64_t total; /* bytes announced so far, at most max */

	uint64_t max, size; /* of the body; the rest of the chunk */
	unsigned int state, line;
	size_t name_len; /* of a trailer */
	char name[20];   /* its beginning, in lower case */
};

void chunks_init(struct chunks *c, uint64_t body_max);

/* chunks_feed() - As prescan_feed(). After CHUNKS_BAD the bytes need no parsing. */
enum chunks_result chunks_feed(struct chunks *c, const char *data, size_t len, size_t *ret_used);

#endif
