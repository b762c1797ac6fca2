/* SPDX-License-Identifier: Apache-2.0 */
/* lines.c - Split bytes at newlines; each byte is looked at once. */
#include "client/lines.h"

#include <string.h>

#define KEEP_BYTES (256u << 10) /* a larger buffer is given back after its line */

void lines_init(struct lines *l, int (*on_line)(void *arg, char *line, size_t len), void *arg)
{
	*l = (struct lines){ .on_line = on_line, .arg = arg };
	buf_init(&l->partial, LINES_MAX);
}

void lines_limit(struct lines *l, size_t max, int (*on_long)(void *arg, const struct lines *l))
{
	buf_init(&l->partial, max);
	l->on_long = on_long;
}

void lines_free(struct lines *l)
{
	buf_free(&l->partial);
}

static void keep_last(struct lines *l, const char *data, size_t len)
{
	if (len >= LINES_EDGE) {
		memcpy(l->last, data + len - LINES_EDGE, LINES_EDGE);
		l->n_last = LINES_EDGE;
		return;
	}
	size_t old = l->n_last + len > LINES_EDGE ? LINES_EDGE - len : l->n_last;

	memmove(l->last, l->last + l->n_last - old, old);
	memcpy(l->last + old, data, len);
	l->n_last = old + len;
}

/* A piece of a line. */
static int take(struct lines *l, const char *data, size_t len)
{
	int r = l->skipping ? 0 : buf_append(&l->partial, data, len);

	if (r < 0 && !l->on_long)
		return r;
	if (r < 0) {
		size_t n = l->partial.len < LINES_EDGE ? l->partial.len : LINES_EDGE;

		memset(l->first, 0, sizeof(l->first));
		memcpy(l->first, buf_str(&l->partial), n);
		l->skipping = true;
		l->n_last = 0;
		buf_free(&l->partial);
	}
	if (l->skipping)
		keep_last(l, data, len);
	return 0;
}

int lines_end(struct lines *l)
{
	struct buf *b = &l->partial;
	int r = 0;

	if (l->skipping) {
		l->skipping = false;
		return l->on_long(l->arg, l);
	}
	while (b->len > 0 && b->data[b->len - 1] == '\r')
		b->data[--b->len] = '\0';
	if (b->len > 0)
		r = l->on_line(l->arg, b->data, b->len);
	if (b->cap > KEEP_BYTES)
		buf_free(b);
	buf_clear(b);
	return r;
}

int lines_feed(struct lines *l, const char *data, size_t len)
{
	while (len > 0) {
		const char *newline = memchr(data, '\n', len);
		size_t n = newline ? (size_t)(newline - data) : len;
		int r = n > 0 ? take(l, data, n) : 0;

		if (r == 0 && newline)
			r = lines_end(l);
		if (r != 0)
			return r;
		n += newline ? 1 : 0;
		data += n;
		len -= n;
	}
	return 0;
}

/* The number behind the last "id": in @text; 0: none. */
static uint64_t find_id(const char *text, size_t len)
{
	static const char mark[] = "\"id\":";
	uint64_t id = 0;

	for (size_t i = 0; i + sizeof(mark) - 1 < len; i++) {
		if (memcmp(text + i, mark, sizeof(mark) - 1) != 0)
			continue;
		uint64_t n = 0;
		size_t j = i + sizeof(mark) - 1, begin;

		while (j < len && text[j] == ' ')
			j++;
		for (begin = j; j < len && j - begin < 16 && text[j] >= '0' && text[j] <= '9'; j++)
			n = n * 10 + (uint64_t)(text[j] - '0');
		if (n > 0)
			id = n;
	}
	return id;
}

uint64_t lines_id(const struct lines *l)
{
	uint64_t id = find_id(l->last, l->n_last);

	return id ? id : find_id(l->first, sizeof(l->first));
}
