/* SPDX-License-Identifier: Apache-2.0 */
/* event_stream.c - Lines end at LF, CR or CRLF; an empty line ends an event. */
#include "bridge/event_stream.h"

#include <string.h>

#include "base/num.h"

void event_stream_init(struct event_stream *v, size_t max)
{
	*v = (struct event_stream){ 0 };
	buf_init(&v->line, max);
	buf_init(&v->data, max);
}

void event_stream_free(struct event_stream *v)
{
	buf_free(&v->line);
	buf_free(&v->data);
}

void event_stream_cut(struct event_stream *v)
{
	event_stream_free(v);
	v->type[0] = '\0';
	v->has_data = v->after_cr = v->begun = v->too_large = false;
}

static bool is(const char *field, size_t len, const char *name)
{
	return strlen(name) == len && memcmp(field, name, len) == 0;
}

static void take_retry(struct event_stream *v, const char *s, size_t len)
{
	if (len <= 9 && num_digits(s, len, &v->retry_ms))
		v->has_retry = true;
}

static void field(struct event_stream *v, const char *line, size_t len)
{
	const char *colon = memchr(line, ':', len);
	size_t name = colon ? (size_t)(colon - line) : len;
	const char *value = colon ? colon + 1 : line + len;
	size_t n = (size_t)(line + len - value);

	if (n > 0 && *value == ' ') {
		value++;
		n--;
	}
	if (is(line, name, "data")) {
		if (v->has_data)
			(void)buf_append(&v->data, "\n", 1);
		(void)buf_append(&v->data, value, n);
		v->has_data = true;
	} else if (is(line, name, "event")) {
		size_t keep = n < sizeof(v->type) - 1 ? n : sizeof(v->type) - 1;

		memcpy(v->type, value, keep);
		v->type[keep] = '\0';
	} else if (is(line, name, "id") && n < sizeof(v->id) && !memchr(value, '\0', n)) {
		memcpy(v->id, value, n);
		v->id[n] = '\0';
	} else if (is(line, name, "retry")) {
		take_retry(v, value, n);
	}
}

/* An empty line. */
static bool dispatch(struct event_stream *v)
{
	struct buf data = v->data;
	char type[sizeof(v->type)];
	bool any = v->has_data && data.len > 0, go_on = true;

	memcpy(type, v->type, sizeof(type));
	v->type[0] = '\0';
	v->has_data = false;
	/* The callback may free us: the data is kept apart while it runs. */
	v->data = (struct buf){ .max = data.max };
	if (any)
		go_on = v->on_event(v->arg, type[0] ? type : "message", data.data, data.len);
	buf_free(&data);
	return go_on;
}

static bool end_line(struct event_stream *v)
{
	bool empty = v->line.len == 0;

	if (!v->begun && v->line.len >= 3 && memcmp(v->line.data, "\xef\xbb\xbf", 3) == 0)
		buf_consume(&v->line, 3);
	v->begun = true;
	if (v->line.err || v->data.err) {
		v->too_large = true;
		return false;
	}
	if (empty)
		return dispatch(v);
	if (v->line.data[0] != ':')
		field(v, v->line.data, v->line.len);
	if (v->line.cap > 65536)
		buf_free(&v->line);
	buf_clear(&v->line);
	return true;
}

bool event_stream_feed(struct event_stream *v, const char *data, size_t len)
{
	while (len > 0) {
		if (v->after_cr && *data == '\n') {
			data++;
			len--;
			v->after_cr = false;
			continue;
		}
		v->after_cr = false;
		const char *lf = memchr(data, '\n', len);
		const char *cr = memchr(data, '\r', lf ? (size_t)(lf - data) : len);
		const char *end = cr ? cr : lf;
		size_t n = end ? (size_t)(end - data) : len;

		if (n > 0 && buf_append(&v->line, data, n) < 0) {
			v->too_large = true;
			return false;
		}
		if (!end)
			return true;
		v->after_cr = *end == '\r';
		if (!end_line(v))
			return false;
		data += n + 1;
		len -= n + 1;
	}
	return true;
}
