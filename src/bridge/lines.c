/* SPDX-License-Identifier: Apache-2.0 */
/* lines.c - Split at newlines; each byte is looked at once. */
#include "bridge/lines.h"

#include <string.h>

/* The number behind "id": in @text, if there is one. The last counts: results come before it as
 * well as behind it. */
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

/* A part of a line. */
static void add(struct lines *l, const char *data, size_t len)
{
	if (!l->skipping && buf_append(&l->text, data, len) < 0) {
		size_t n = l->text.len < LINES_EDGE ? l->text.len : LINES_EDGE;

		memset(l->first, 0, sizeof(l->first));
		memcpy(l->first, buf_str(&l->text), n);
		l->skipping = true;
		l->n_last = 0;
		buf_free(&l->text);
	}
	if (l->skipping)
		keep_last(l, data, len);
}

static bool end(struct lines *l)
{
	bool go_on;

	if (l->skipping) {
		uint64_t id = find_id(l->last, l->n_last);

		l->skipping = false;
		return l->on_long(l->arg, id ? id : find_id(l->first, sizeof(l->first)));
	}
	/* The line is the callback's while it runs, whatever becomes of us. */
	struct buf text = l->text;

	l->text = (struct buf){ .max = text.max };
	while (text.len > 0 && text.data[text.len - 1] == '\r')
		text.data[--text.len] = '\0';
	go_on = text.len == 0 || l->on_line(l->arg, text.data, text.len);
	if (go_on && text.cap <= 65536 && !l->text.data) {
		buf_clear(&text);
		l->text = text;
	} else {
		buf_free(&text);
	}
	return go_on;
}

bool lines_feed(struct lines *l, const char *data, size_t len)
{
	while (len > 0) {
		const char *newline = memchr(data, '\n', len);
		size_t n = newline ? (size_t)(newline - data) : len;

		if (n > 0)
			add(l, data, n);
		if (newline && !end(l))
			return false;
		n += newline ? 1 : 0;
		data += n;
		len -= n;
	}
	return true;
}

void lines_free(struct lines *l)
{
	buf_free(&l->text);
}
