/* SPDX-License-Identifier: Apache-2.0 */
/* test_chunks.c - The framing of chunked bodies, in one piece and byte by byte. */
#include "net/prescan.h"

#include <stdio.h>
#include <string.h>

#include "../unit.h"
#include "base/fd.h"

#define BODY_MAX 100

static const struct row {
	const char *text;
	int status; /* 0: complete; -1: more is needed */
	const char *message;
	size_t total;
} rows[] = {
	{ "0\r\n\r\n", 0, "", 0 },
	{ "5\r\nhello\r\n0\r\n\r\n", 0, "", 5 },
	{ "a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n", 0, "", 20 },
	{ "0005\r\nhello\r\n000\r\n\r\n", 0, "", 5 },
	{ "1\r\n\r\r\n1\r\n\n\r\n0\r\n\r\n", 0, "", 2 },
	{ "5;x\r\nhello\r\n0;last\r\n\r\n", 0, "", 5 },
	{ "5;x=y\r\nhello\r\n0\r\n\r\n", 0, "", 5 },
	{ "5;a;b=\"c d;\t\";e\r\nhello\r\n0\r\n\r\n", 0, "", 5 },
	{ "", -1, "", 0 },
	{ "5", -1, "", 0 },
	{ "5\r\nhel", -1, "", 5 },
	{ "0\r\n", -1, "", 0 },

	{ "\r\n", 400, "hexadecimal", 0 },
	{ " 5\r\nhello\r\n", 400, "hexadecimal", 0 },
	{ "5 \r\nhello\r\n", 400, "hexadecimal", 0 },
	{ "5\t\r\nhello\r\n", 400, "hexadecimal", 0 },
	{ "0x5\r\nhello\r\n", 400, "hexadecimal", 0 },
	{ "-5\r\n", 400, "hexadecimal", 0 },
	{ "+5\r\n", 400, "hexadecimal", 0 },
	{ "5_0\r\n", 400, "hexadecimal", 0 },
	{ "g\r\n", 400, "hexadecimal", 0 },
	{ ";x\r\n", 400, "hexadecimal", 0 },
	{ "5\nhello\r\n", 400, "hexadecimal", 0 },
	{ "5\r\rhello", 400, "CRLF", 0 },
	{ "5;x\nhello\r\n", 400, "extension", 0 },
	{ "5;x\r\rhello", 400, "CRLF", 0 },
	{ "5;\r\nhello\r\n", 400, "extension", 0 },
	{ "5; x\r\nhello\r\n", 400, "extension", 0 },
	{ "5;x=\r\nhello\r\n", 400, "extension", 0 },
	{ "5;x=y z\r\nhello\r\n", 400, "extension", 0 },
	{ "5;x=y;z\r\nhello\r\n", 400, "extension", 0 },
	{ "5;x=\"y\r\n\"\r\nhello\r\n", 400, "extension", 0 },
	{ "5;x=\"\\\"\"\r\nhello\r\n", 400, "extension", 0 },
	{ "5;x\x7f\r\n", 400, "extension", 0 },
	{ "5\r\nhelloo\r\n", 400, "longer", 5 },
	{ "5\r\nhello\n0\r\n\r\n", 400, "longer", 5 },
	{ "5\r\nhello\r0\r\n\r\n", 400, "CRLF", 5 },
	{ "5\r\nhell\r\n0\r\n\r\n", 400, "longer", 5 },
	{ "0\r\n\rX", 400, "CRLF", 0 },
	{ "0\r\n\n", 400, "trailer", 0 },

	{ "0\r\nX: y\r\n\r\n", 0, "", 0 },
	{ "2\r\nab\r\n0\r\nX:\r\nExpires: \t a, b\t \r\nHosts: h\r\n\r\n", 0, "", 2 },
	{ "0\r\nX: y\r\n", -1, "", 0 },
	{ "0\r\nX: y", -1, "", 0 },
	{ "0\r\n X: y\r\n\r\n", 400, "malformed", 0 },
	{ "0\r\n: y\r\n\r\n", 400, "malformed", 0 },
	{ "0\r\nX\r\n\r\n", 400, "malformed", 0 },
	{ "0\r\nX : y\r\n\r\n", 400, "malformed", 0 },
	{ "0\r\nX: y\r\n z\r\n\r\n", 400, "malformed", 0 },
	{ "0\r\nX: y\n\r\n", 400, "control", 0 },
	{ "0\r\nX: y\rZ: a\r\n\r\n", 400, "CRLF", 0 },
	{ "0\r\nX: \x01\r\n\r\n", 400, "control", 0 },
	{ "0\r\nContent-Length: 9\r\n\r\n", 400, "frames", 0 },
	{ "0\r\nX: y\r\ncOnTent-length:9\r\n\r\n", 400, "frames", 0 },
	{ "0\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "frames", 0 },
	{ "0\r\nHost: h\r\n\r\n", 400, "frames", 0 },
	{ "65\r\n", 413, "too large", 0 },
	{ "ffffffffffffffff\r\n", 413, "too large", 0 },
	{ "10000000000000005\r\n", 413, "too large", 0 },
	{ "60\r\n", -1, "", 96 },
};

static void check(const struct row *row, size_t step)
{
	size_t len = strlen(row->text), used;
	enum chunks_result r = CHUNKS_MORE;
	struct chunks c;

	chunks_init(&c, BODY_MAX);
	for (size_t at = 0; at < len && r == CHUNKS_MORE; at += step)
		r = chunks_feed(&c, row->text + at, len - at < step ? len - at : step, &used);
	if (r != (row->status == 0 ? CHUNKS_DONE :
		  row->status < 0  ? CHUNKS_MORE :
				     CHUNKS_BAD) ||
	    c.status != (row->status > 0 ? row->status : 0))
		fail_msg("row %zu, step %zu: result %d, status %d (%s)", (size_t)(row - rows), step,
			 r, c.status, c.message ? c.message : "");
	if (row->status > 0)
		assert_non_null(strstr(c.message, row->message));
	assert_int_equal(c.total, row->total);
	if (r != CHUNKS_MORE) {
		assert_int_equal(chunks_feed(&c, "5\r\n", 3, &used), r);
		assert_int_equal(used, 0);
	}
}

TEST(table)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		for (size_t step = 1; step <= strlen(rows[i].text) + 1; step++)
			check(&rows[i], step);
}

/* The bytes of the next request are not the body's. */
TEST(where_it_ends)
{
	static const char text[] = "3\r\nabc\r\n0\r\n\r\nGET / HTTP/1.1\r\n";
	struct chunks c;
	size_t used;

	chunks_init(&c, BODY_MAX);
	assert_int_equal(chunks_feed(&c, text, sizeof(text) - 1, &used), CHUNKS_DONE);
	assert_int_equal(used, strstr(text, "GET") - text);
}

TEST(long_lines)
{
	char text[1000];
	struct chunks c;
	size_t used;

	for (int name = 250; name <= 260; name++) {
		int n = snprintf(text, sizeof(text), "1;%0*d\r\n", name, 0);

		/* The line: a digit, a semicolon, the name and the CR. */
		chunks_init(&c, BODY_MAX);
		assert_int_equal(chunks_feed(&c, text, (size_t)n, &used),
				 name + 3 <= CHUNK_LINE_MAX ? CHUNKS_MORE : CHUNKS_BAD);
	}
	/* All trailers together: 6 bytes each, and the CR of the last line. */
	for (size_t n = CHUNK_TRAILERS_MAX / 6 - 1; n <= CHUNK_TRAILERS_MAX / 6 + 1; n++) {
		enum chunks_result r;

		chunks_init(&c, BODY_MAX);
		r = chunks_feed(&c, "0\r\n", 3, &used);
		for (size_t i = 0; i < n && r == CHUNKS_MORE; i++)
			r = chunks_feed(&c, "a: b\r\n", 6, &used);
		if (r == CHUNKS_MORE)
			r = chunks_feed(&c, "\r\n", 2, &used);
		assert_int_equal(r, n * 6 + 1 <= CHUNK_TRAILERS_MAX ? CHUNKS_DONE : CHUNKS_BAD);
		assert_int_equal(c.status, r == CHUNKS_DONE ? 0 : 431);
	}
	/* As many zeros as anybody likes are not a number either. */
	memset(text, '0', sizeof(text));
	chunks_init(&c, BODY_MAX);
	assert_int_equal(chunks_feed(&c, text, sizeof(text), &used), CHUNKS_BAD);
	assert_int_equal(c.status, 400);
}
