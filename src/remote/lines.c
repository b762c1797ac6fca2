/* SPDX-License-Identifier: Apache-2.0 */
/* lines.c - Find newlines in what has come so far. */
#include "remote/lines.h"

#include <errno.h>
#include <string.h>

void lines_init(struct lines *l, int (*on_line)(void *arg, const char *line, size_t len), void *arg)
{
	*l = (struct lines){ .on_line = on_line, .arg = arg };
	buf_init(&l->partial, LINES_MAX);
}

void lines_limit(struct lines *l, size_t max, int (*on_long)(void *arg))
{
	buf_init(&l->partial, max);
	l->on_long = on_long;
}

void lines_free(struct lines *l)
{
	buf_free(&l->partial);
}

/* The line that is complete now; a carriage return before the newline is not part of it. */
static int hand_over(struct lines *l)
{
	struct buf *b = &l->partial;
	size_t len = b->len;
	int r = 0;

	if (len > 0 && b->data[len - 1] == '\r')
		b->data[--len] = '\0';
	if (len > 0)
		r = l->on_line(l->arg, buf_str(b), len);
	buf_clear(b);
	return r;
}

/* A piece of a line. */
static int take(struct lines *l, const char *data, size_t len)
{
	int r = l->skipping ? 0 : buf_append(&l->partial, data, len);

	if (r != -EMSGSIZE || !l->on_long)
		return r;
	buf_free(&l->partial);
	l->skipping = true;
	return l->on_long(l->arg);
}

int lines_feed(struct lines *l, const char *data, size_t len)
{
	while (len > 0) {
		const char *newline = memchr(data, '\n', len);
		size_t n = newline ? (size_t)(newline - data) : len;
		int r = take(l, data, n);

		if (r == 0 && newline) {
			r = l->skipping ? 0 : hand_over(l);
			l->skipping = false;
		}
		if (r != 0)
			return r;
		n += newline ? 1 : 0;
		data += n;
		len -= n;
	}
	return 0;
}

int lines_end(struct lines *l)
{
	return hand_over(l);
}
