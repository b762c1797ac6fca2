/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool_search.c - Lines of a spool that hold a text.
 *
 * A window of the stream is looked at, and then the next one, which begins a little before the end of the
 * last, so that nothing hides at a border. The position only ever moves over bytes that are dealt with: they
 * hold no match, or one that was reported. Newlines are counted as it passes them.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "front/spool.h"

#define WINDOW (64u << 10)
#define BEFORE 256u /* of a line that is too long: so much before the match */

static_assert(WINDOW > 2 * SPOOL_PATTERN_MAX, "a window holds more than a border");

struct window {
	char bytes[WINDOW];
	size_t len, at;
	uint64_t offset; /* of its first byte */
};

/* Pass the bytes up to @to, which is in the window. */
static void pass(struct spool_search *at, struct window *w, size_t to)
{
	const char *nl;

	while ((nl = memchr(w->bytes + w->at, '\n', to - w->at))) {
		w->at = (size_t)(nl - w->bytes) + 1;
		at->lines++;
		at->line_start = w->offset + w->at;
		at->matched = false;
	}
	w->at = to;
	at->offset = w->offset + to;
}

static int report(const struct spool *s, const struct spool_search *at, uint64_t match,
		  size_t pattern_len, spool_match_fn *fn, void *arg)
{
	char text[SPOOL_LINE_MAX];
	uint64_t start = at->line_start;

	if (match + pattern_len - start > SPOOL_LINE_MAX)
		start = match - start > BEFORE ? match - BEFORE : start;
	int64_t n = spool_read(s, start, text, sizeof(text));

	if (n < 0)
		return (int)n;
	const char *nl = memchr(text, '\n', (size_t)n);

	fn(arg, match, at->lines + 1, text, nl ? (size_t)(nl - text) : (size_t)n);
	return 0;
}

/* All lines that match in the window. Return: how many, or -errno. */
static int scan(const struct spool *s, struct spool_search *at, struct window *w,
		const char *pattern, size_t len, size_t matches, spool_match_fn *fn, void *arg)
{
	int found = 0;

	while ((size_t)found < matches) {
		const char *from = w->bytes + w->at;
		size_t left = w->len - w->at;

		if (at->matched) { /* the rest of its line is of no interest */
			const char *nl = memchr(from, '\n', left);

			pass(at, w, nl ? (size_t)(nl - w->bytes) + 1 : w->len);
			if (!nl)
				break;
			continue;
		}
		const char *hit = memmem(from, left, pattern, len);

		if (!hit)
			break;
		pass(at, w, (size_t)(hit - w->bytes));
		int r = report(s, at, at->offset, len, fn, arg);

		if (r < 0)
			return r;
		at->matched = true;
		found++;
	}
	return found;
}

int spool_search(const struct spool *s, struct spool_search *at, const char *pattern,
		 size_t pattern_len, size_t matches, uint64_t bytes, spool_match_fn *fn, void *arg)
{
	struct window w;
	uint64_t until = at->offset + bytes;

	if (pattern_len == 0 || pattern_len > SPOOL_PATTERN_MAX)
		return -EINVAL;
	while (at->offset < until) {
		int64_t n = spool_read(s, at->offset, w.bytes, sizeof(w.bytes));

		if (n < 0)
			return (int)n;
		w.offset = at->offset;
		w.len = (size_t)n;
		w.at = 0;
		int found = scan(s, at, &w, pattern, pattern_len, matches, fn, arg);

		if (found < 0)
			return found;
		matches -= (size_t)found;
		if (matches == 0)
			return 1;
		if (w.offset + w.len >= s->kept)
			return 0;
		if (!at->matched && w.len - w.at >= pattern_len) /* keep what may begin a match */
			pass(at, &w, w.len - (pattern_len - 1));
	}
	return 1;
}
