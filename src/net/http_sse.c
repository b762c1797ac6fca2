/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_sse.c - Server-Sent Events on a stream.
 *
 * One event is one write. A line ends at LF, CR or CRLF, as for the reader, so data can neither end
 * the event nor begin another field.
 */
#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "base/buf.h"
#include "net/http.h"

/* Of an event with its fields; far more than any producer sends. */
#define SSE_MAX (64 * 1024 * 1024)

static bool one_line(const char *s)
{
	return !s || !strpbrk(s, "\r\n");
}

/* Every line of @s after @prefix; an empty text is one empty line. */
static void put_lines(struct buf *out, const char *prefix, const char *s, size_t len)
{
	const char *end = s + len;

	for (;;) {
		const char *lf = memchr(s, '\n', (size_t)(end - s));
		const char *cr = memchr(s, '\r', (size_t)((lf ? lf : end) - s));
		const char *p = cr ? cr : lf ? lf : end;

		(void)buf_puts(out, prefix);
		(void)buf_append(out, s, (size_t)(p - s));
		(void)buf_puts(out, "\n");
		if (p == end)
			return;
		s = p + (*p == '\r' && p + 1 < end && p[1] == '\n' ? 2 : 1);
	}
}

static int emit(struct http_exchange *x, struct buf *out)
{
	(void)buf_puts(out, "\n");
	return out->err ? http_stream_lost(x, out->err) : http_stream_write(x, out->data, out->len);
}

int sse_event(struct http_exchange *x, const char *id, const char *event, const char *data,
	      size_t len)
{
	_buf_ struct buf out = BUF_INIT(SSE_MAX);

	if (!one_line(id) || !one_line(event))
		return -EINVAL;
	if (id)
		(void)buf_printf(&out, "id: %s\n", id);
	if (event)
		(void)buf_printf(&out, "event: %s\n", event);
	if (memchr(data, '\n', len) || memchr(data, '\r', len)) {
		put_lines(&out, "data: ", data, len);
		return emit(x, &out);
	}
	(void)buf_puts(&out, "data: ");
	if (out.err)
		return http_stream_lost(x, out.err);
	/* Data that is one line, as JSON always is, is not copied. */
	struct iovec iov[] = { { .iov_base = out.data, .iov_len = out.len },
			       { .iov_base = (char *)data, .iov_len = len },
			       { .iov_base = "\n\n", .iov_len = 2 } };

	return http_stream_writev(x, iov, 3);
}

int sse_comment(struct http_exchange *x, const char *text)
{
	_buf_ struct buf out = BUF_INIT(SSE_MAX);

	put_lines(&out, ": ", text, strlen(text));
	return emit(x, &out);
}
