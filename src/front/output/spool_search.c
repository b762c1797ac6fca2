/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool_search.c - Finds the lines of a spool that match a pattern.
 *
 * The search reads a window of the stream, and then the next one, which begins a little before the
 * end of the last, so that it has every match that crosses the border. The position moves only over
 * bytes that are done with: they have no match, or a match that was reported. The search counts
 * newlines as it passes them.
 *
 * The parts of a glob are searched for one after the other, each at its first place after the part
 * before. That finds a match if there is one, because any bytes may be between two parts; so the
 * search never goes back.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "front/output/spool.h"

#define WINDOW (64u << 10)
#define BEFORE 256u /* bytes before the match that are reported of a line that is too long */

static_assert(WINDOW > 2 * SPOOL_PATTERN_MAX, "a window holds more than a border");

struct window {
	char bytes[WINDOW];
	size_t len, at;
	uint64_t offset; /* of its first byte */
};

/* Move the position to @to, which is in the window, and count newlines on the way. */
static void pass(struct spool_search *at, struct window *w, size_t to)
{
	const char *nl;

	while ((nl = memchr(w->bytes + w->at, '\n', to - w->at))) {
		w->at = (size_t)(nl - w->bytes) + 1;
		at->lines++;
		at->line_start = w->offset + w->at;
		at->matched = false;
		at->part = 0;
	}
	w->at = to;
	at->offset = w->offset + to;
}

/* ---- the pattern --------------------------------------------------------------------------- */

bool spool_pattern_make(struct spool_pattern *p, const char *text, size_t len, bool glob)
{
	size_t n = 0;
	bool open = false;

	memset(p, 0, sizeof(*p));
	if (len > SPOOL_PATTERN_MAX || memchr(text, '\n', len))
		return false;
	for (size_t i = 0; i < len; i++) {
		if (glob && text[i] == '*') {
			open = false;
			continue;
		}
		if (!open)
			p->parts[p->n_parts++].at = n;
		open = true;
		p->any[n] = glob && text[i] == '?';
		if (glob && text[i] == '\\' && i + 1 < len)
			i++;
		p->bytes[n] = text[i];
		p->parts[p->n_parts - 1].len++;
		p->parts[p->n_parts - 1].wild |= p->any[n];
		n++;
	}
	return n > 0;
}

static bool fits(const struct spool_pattern *p, size_t part, const char *text)
{
	size_t first = p->parts[part].at;

	for (size_t i = 0; i < p->parts[part].len; i++)
		if (p->any[first + i] ? text[i] == '\n' : text[i] != p->bytes[first + i])
			return false;
	return true;
}

/*
 * Find the first place of a part. A part that is not the first of its pattern has to be in this
 * line.
 */
static const char *find(const struct spool_pattern *p, size_t part, const char *from, size_t left)
{
	const char *nl = part > 0 ? memchr(from, '\n', left) : NULL;
	size_t len = p->parts[part].len;

	if (nl)
		left = (size_t)(nl - from);
	if (!p->parts[part].wild)
		return memmem(from, left, p->bytes + p->parts[part].at, len);
	for (size_t i = 0; i + len <= left; i++)
		if (fits(p, part, from + i))
			return from + i;
	return NULL;
}

/* ---- searching ----------------------------------------------------------------------------- */

/* Report the current line. The match begins at at->first, and ends at the position. */
static int report(const struct spool *s, const struct spool_search *at, spool_match_fn *fn,
		  void *arg)
{
	char text[SPOOL_LINE_MAX];
	uint64_t start = at->line_start;

	if (at->offset - start > SPOOL_LINE_MAX)
		start = at->first - start > BEFORE ? at->first - BEFORE : start;
	int64_t n = spool_read(s, start, text, sizeof(text));

	if (n < 0)
		return (int)n;
	const char *nl = memchr(text, '\n', (size_t)n);

	fn(arg, at->first, at->lines + 1, text, nl ? (size_t)(nl - text) : (size_t)n);
	return 0;
}

/* Pass the rest of the current line. False: the line goes on after the window. */
static bool pass_line(struct spool_search *at, struct window *w)
{
	const char *nl = memchr(w->bytes + w->at, '\n', w->len - w->at);

	pass(at, w, nl ? (size_t)(nl - w->bytes) + 1 : w->len);
	return nl != NULL;
}

/*
 * The rest of the window does not have the next part: pass the bytes that cannot begin it. Return:
 * whether the window has more to search.
 */
static bool pass_miss(struct spool_search *at, struct window *w, const struct spool_pattern *p)
{
	size_t len = p->parts[at->part].len;

	if (at->part > 0 && memchr(w->bytes + w->at, '\n', w->len - w->at))
		return pass_line(at, w); /* so this line does not have it */
	if (w->len - w->at >= len)       /* keep the bytes that may begin it */
		pass(at, w, w->len - (len - 1));
	return false;
}

/* Report all lines of the window that match. Return: their number, or -errno. */
static int scan(const struct spool *s, struct spool_search *at, struct window *w,
		const struct spool_pattern *p, size_t matches, spool_match_fn *fn, void *arg)
{
	int found = 0;

	for (;;) {
		if (at->matched) { /* skip the rest of its line */
			if (!pass_line(at, w))
				return found;
			continue;
		}
		if ((size_t)found >= matches)
			return found;
		const char *hit = find(p, at->part, w->bytes + w->at, w->len - w->at);

		if (!hit && pass_miss(at, w, p))
			continue;
		if (!hit)
			return found;
		pass(at, w, (size_t)(hit - w->bytes));
		if (at->part == 0)
			at->first = at->offset;
		pass(at, w, w->at + p->parts[at->part].len);
		if (++at->part < p->n_parts)
			continue;
		int r = report(s, at, fn, arg);

		if (r < 0)
			return r;
		at->matched = true;
		found++;
	}
}

int spool_search(const struct spool *s, struct spool_search *at,
		 const struct spool_pattern *pattern, size_t matches, uint64_t bytes,
		 spool_match_fn *fn, void *arg)
{
	struct window w;
	uint64_t until = at->offset + bytes;

	while (at->offset < until) {
		int64_t n = spool_read(s, at->offset, w.bytes, sizeof(w.bytes));

		if (n < 0)
			return (int)n;
		w.offset = at->offset;
		w.len = (size_t)n;
		w.at = 0;
		if (w.offset < at->from) /* only count lines */
			pass(at, &w,
			     at->from - w.offset < w.len ? (size_t)(at->from - w.offset) : w.len);
		int found = scan(s, at, &w, pattern, matches, fn, arg);

		if (found < 0)
			return found;
		matches -= (size_t)found;
		if (w.offset + w.len >= s->kept && (matches > 0 || at->offset >= s->kept))
			return 0;
		if (matches == 0)
			return 1;
	}
	return 1;
}
