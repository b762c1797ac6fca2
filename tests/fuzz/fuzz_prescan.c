/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_prescan.c - The scanners of heads and of chunked bodies, and the decoders of targets.
 *
 * The first byte chooses how the rest is cut. The verdict is the same with any cuts, at the same
 * byte. A second, line-based reader, which shares no code with the scanner, reads every accepted
 * head again and must find the same framing; fuzz_http covers llhttp's reading of it.
 */
#include <strings.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "fuzz.h"
#include "net/prescan.h"
#include "net/target.h"

#define HEAD_MAX 2048
#define TARGET_MAX 200
#define BODY_MAX 5000

static void check_split_head(const char *data, size_t len, size_t step, const struct prescan *whole,
			     enum prescan_result expected)
{
	enum prescan_result r = PRESCAN_MORE;
	struct prescan p;

	prescan_init(&p, HEAD_MAX, TARGET_MAX);
	for (size_t at = 0; at < len && r == PRESCAN_MORE; at += step) {
		size_t n = len - at < step ? len - at : step, used;

		r = prescan_feed(&p, data + at, n, &used);
		require(used <= n && (r != PRESCAN_MORE || used == n));
	}
	require(r == expected && p.head_len == whole->head_len && p.status == whole->status &&
		p.message == whole->message && p.length == whole->length &&
		p.chunked == whole->chunked && p.n_headers == whole->n_headers);
}

/* The number at @s, which is not NUL-terminated. */
static int64_t decimal_of(const char *s, const char *end)
{
	int64_t n = 0;

	while (s < end && (*s == ' ' || *s == '\t'))
		s++;
	for (; s < end && *s >= '0' && *s <= '9'; s++)
		n = n * 10 + (*s - '0');
	return n;
}

/* A head that was accepted, line by line. */
static void check_head(const struct prescan *p, const char *data)
{
	const char *at = data + p->skipped, *end = data + p->head_len;
	size_t hosts = 0, lengths = 0, codings = 0, lines = 0;

	require(p->head_len <= HEAD_MAX && p->target_len <= TARGET_MAX && p->minor <= 1);
	require(!memchr(data, '\0', p->head_len));
	for (;; lines++) {
		const char *lf = memchr(at, '\n', (size_t)(end - at));

		require(lf && lf > at && lf[-1] == '\r' &&
			!memchr(at, '\r', (size_t)(lf - at) - 1));
		if (lf == at + 1)
			break;
		if (lines > 0) {
			const char *colon = memchr(at, ':', (size_t)(lf - at));

			require(colon && colon > at && colon[-1] != ' ' && *at != ' ' &&
				*at != '\t');

			size_t n = (size_t)(colon - at);

			hosts += n == 4 && strncasecmp(at, "Host", n) == 0;
			if (n == 14 && strncasecmp(at, "Content-Length", n) == 0) {
				lengths++;
				require(decimal_of(colon + 1, end) == p->length);
			}
			codings += n == 17 && strncasecmp(at, "Transfer-Encoding", n) == 0;
		}
		at = lf + 1;
	}
	require(at + 2 == end && lines == p->n_headers + 1u && lines <= PRESCAN_HEADERS_MAX + 1);
	require(hosts <= 1 && lengths <= 1 && codings <= 1 && lengths + codings <= 1);
	require(hosts == 1 || p->minor == 0);
	require(p->has_length == (lengths == 1) && p->chunked == (codings == 1) && p->length >= 0);
}

static size_t run_head(const char *data, size_t len, size_t step)
{
	struct prescan p;
	size_t used;

	prescan_init(&p, HEAD_MAX, TARGET_MAX);

	enum prescan_result r = prescan_feed(&p, data, len, &used);

	require(used <= len && used == p.head_len);
	require((r == PRESCAN_BAD) == (p.status != 0) && (p.status != 0) == (p.message != NULL));
	check_split_head(data, len, step, &p, r);
	if (r == PRESCAN_DONE)
		check_head(&p, data);
	return r == PRESCAN_DONE ? used : 0;
}

static void run_chunks(const char *data, size_t len, size_t step)
{
	enum chunks_result whole, r = CHUNKS_MORE;
	struct chunks c, s;
	size_t used, total = 0;

	chunks_init(&c, BODY_MAX);
	chunks_init(&s, BODY_MAX);
	whole = chunks_feed(&c, data, len, &used);
	for (size_t at = 0; at < len && r == CHUNKS_MORE; at += step) {
		size_t n = len - at < step ? len - at : step, part;

		r = chunks_feed(&s, data + at, n, &part);
		total += part;
	}
	require(r == whole && total == used && s.status == c.status && s.message == c.message);
	require(c.total <= BODY_MAX && s.total == c.total);
	require(whole != CHUNKS_DONE || (used >= 5 && memcmp(data + used - 4, "\r\n\r\n", 4) == 0));
}

static void run_target(const char *data, size_t len)
{
	char *path = malloc(len + 2), *text = malloc(len + 1);
	const char *why = NULL;
	struct target t;

	require(path && text);
	if (target_split(data, len, &t, &why) == 0) {
		require(t.path >= data && t.path + t.path_len <= data + len);
		require(!t.query || t.query + t.query_len == data + len);
		require(!t.authority || host_valid(t.authority, t.authority_len));
		if (target_decode_path(t.path, t.path_len, t.path_len, path, &why) == 0)
			require(utf8_valid(path, strlen(path)) && strlen(path) <= t.path_len &&
				path[0] == '/' && !strstr(path, "/../") && !strstr(path, "/./") &&
				!strchr(path, '\\'));
	}
	require(!host_valid(data, len) || !memchr(data, '/', len));
	memcpy(text, data, len);
	text[len] = '\0';

	_buf_ struct buf name = BUF_INIT(64);
	_buf_ struct buf value = BUF_INIT(64);
	const char *pos = text;

	while (query_next(&pos, &name, &value) > 0)
		require(utf8_valid(buf_str(&name), name.len) &&
			strlen(buf_str(&value)) == value.len);
	require(pos >= text && pos <= text + len);
	free(path);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;

	size_t step = data[0] ? data[0] : 1, len = size - 1;
	const char *text = (const char *)data + 1;
	size_t head = run_head(text, len, step);

	run_chunks(text + head, len - head, step);
	run_target(text, len);
	return 0;
}
