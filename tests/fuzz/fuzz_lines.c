/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_lines.c - A stream of events as a client reads it: lines out of pieces, events out of lines.
 */
#include "base/buf.h"
#include "client/lines.h"
#include "fuzz.h"
#include "remote/stream_event.h"

struct seen {
	size_t bytes;
	struct buf text; /* all lines, each with a newline */
};

/* The quick way and the other agree on each line that the quick way takes. */
static void check_quick(const char *line, size_t len, const struct event *ev, int r,
			const struct buf *text)
{
	_buf_ struct buf out = BUF_INIT(1u << 20);
	bool is_stderr;
	uint64_t id;

	if (!event_quick(line, len, &id, &is_stderr, &out))
		return;
	if (id != ev->id || !event_is(ev, is_stderr ? "stderr" : "stdout") || r != 0 ||
	    out.len != text->len || memcmp(buf_str(&out), buf_str(text), out.len) != 0)
		abort();
}

static int on_line(void *arg, char *line, size_t len)
{
	_buf_ struct buf out = BUF_INIT(1u << 20);
	struct seen *s = arg;
	struct event ev;

	require(len > 0 && !memchr(line, '\n', len) && line[len] == '\0');
	s->bytes += len;
	(void)buf_append(&s->text, line, len);
	(void)buf_append(&s->text, "\n", 1);
	if (event_parse(line, len, &ev) == 0) {
		int r = event_text(&ev, &out);

		check_quick(line, len, &ev, r, &out);
		event_free(&ev);
	}
	return 0;
}

static void feed(const char *data, size_t size, size_t step, struct seen *s)
{
	struct lines l;

	lines_init(&l, on_line, s);
	for (size_t at = 0; at < size; at += step)
		require(lines_feed(&l, data + at, size - at < step ? size - at : step) == 0);
	(void)lines_end(&l);
	lines_free(&l);
}

static int on_long(void *arg, const struct lines *l)
{
	struct seen *s = arg;

	(void)l;
	return buf_puts(&s->text, "(long)\n");
}

/* The same with lines that are skipped when they are longer than a few bytes. */
static void feed_limited(const char *data, size_t size, size_t step, struct seen *s)
{
	struct lines l;

	lines_init(&l, on_line, s);
	lines_limit(&l, 24, on_long);
	for (size_t at = 0; at < size; at += step)
		require(lines_feed(&l, data + at, size - at < step ? size - at : step) == 0);
	(void)lines_end(&l);
	lines_free(&l);
}

/* The first byte is the size of the pieces; it must not matter. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seen whole = { .text.max = 16u << 20 }, pieces = { .text.max = 16u << 20 };

	if (size < 2)
		return 0;
	feed((const char *)data + 1, size - 1, size, &whole);
	feed((const char *)data + 1, size - 1, data[0] % 16 + 1u, &pieces);
	feed_limited((const char *)data + 1, size - 1, size, &whole);
	feed_limited((const char *)data + 1, size - 1, data[0] % 16 + 1u, &pieces);
	require(whole.bytes == pieces.bytes && whole.text.len == pieces.text.len &&
		memcmp(buf_str(&whole.text), buf_str(&pieces.text), whole.text.len) == 0);
	buf_free(&whole.text);
	buf_free(&pieces.text);
	return 0;
}
