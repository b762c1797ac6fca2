/* SPDX-License-Identifier: Apache-2.0 */
/* tail.c - A ring of the last bytes of a stream. */
#include "front/output/tail.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

void tail_add(struct tail *t, const char *data, size_t len)
{
	t->bytes += len;
	if (!t->data && len > 0)
		t->data = malloc(TAIL_MAX);
	if (!t->data)
		return;
	if (len > TAIL_MAX) {
		data += len - TAIL_MAX;
		len = TAIL_MAX;
	}
	size_t first = len < TAIL_MAX - t->at ? len : TAIL_MAX - t->at;

	memcpy(t->data + t->at, data, first);
	memcpy(t->data, data + first, len - first);
	t->at = (t->at + len) % TAIL_MAX;
	t->kept = t->kept + len < TAIL_MAX ? t->kept + len : TAIL_MAX;
}

void tail_free(struct tail *t)
{
	free(t->data);
	*t = (struct tail){ 0 };
}

static char byte_at(const struct tail *t, size_t i)
{
	return t->data[(t->at + TAIL_MAX - t->kept + i) % TAIL_MAX];
}

void tail_read(const struct tail *t, size_t lines, struct buf *out)
{
	size_t from = t->kept;

	/* A newline at the very end ends the last line, and does not begin another. */
	while (from > 0 && lines > 0) {
		from--;
		if (from > 0 && byte_at(t, from - 1) == '\n')
			lines--;
	}
	for (size_t i = from; i < t->kept; i++) {
		char c = byte_at(t, i);

		(void)buf_append(out, &c, 1);
	}
}
