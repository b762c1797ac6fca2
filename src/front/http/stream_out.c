/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_out.c - From a stream log to the wire.
 *
 * Whatever happens, pump() is called and does what can be done: it writes events until the
 * connection has enough, or the log has no more. The exchange ends in one of four ways: after the
 * last event, cut off because events are lost (the client comes back and is told), by the client's
 * going away, or never having begun because it was a HEAD.
 */
#include "front/http/stream_out.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"
#include "front/http/reply.h"
#include "front/http/serve.h"
#include "net/http.h"

#define HEAD_MAX 96 /* an id and a type, which is ours */

struct stream_out {
	struct http_exchange *x;
	struct stream_reader reader;
	enum stream_format format;
	bool dead; /* the connection has ended: on_gone will come */
};

enum stream_format stream_format_of(const struct http_exchange *x, bool wanted)
{
	const char *accept = http_header(x, "accept");

	if (accept && strstr(accept, "application/x-ndjson"))
		return STREAM_NDJSON;
	if (wanted || (accept && strstr(accept, "text/event-stream")))
		return STREAM_SSE;
	return STREAM_NONE;
}

/* An event as a line of NDJSON, in three pieces; the first is in @head. Id 0: it has none. */
static void line_of(const struct stream_event *ev, char head[static HEAD_MAX],
		    struct iovec iov[static 3])
{
	bool members = ev->len > 2 && ev->json[0] == '{';
	const char *rest = members ? "," : "}";
	int n = ev->id ? snprintf(head, HEAD_MAX, "{\"id\":%" PRIu64 ",\"type\":\"%s\"%s", ev->id,
				  ev->type, rest) :
			 snprintf(head, HEAD_MAX, "{\"type\":\"%s\"%s", ev->type, rest);

	iov[0] = (struct iovec){ .iov_base = head, .iov_len = (size_t)n };
	iov[1] = (struct iovec){ .iov_base = ev->json + 1, .iov_len = members ? ev->len - 1 : 0 };
	iov[2] = (struct iovec){ .iov_base = "\n", .iov_len = 1 };
}

void stream_out_line(struct buf *out, const struct stream_event *ev)
{
	char head[HEAD_MAX];
	struct iovec iov[3];

	line_of(ev, head, iov);
	for (size_t i = 0; i < 3; i++)
		(void)buf_append(out, iov[i].iov_base, iov[i].iov_len);
}

/* ---- the end ------------------------------------------------------------------------------- */

static void stop(struct stream_out *o)
{
	(void)context_done(o->x);
	stream_reader_detach(&o->reader);
	free(o);
}

static void on_gone(struct request_context *v)
{
	stop(v->work);
}

/* ---- writing ------------------------------------------------------------------------------- */

static int write_event(struct http_exchange *x, enum stream_format format,
		       const struct stream_event *ev)
{
	char id[24], head[HEAD_MAX];
	struct iovec iov[3];

	if (format == STREAM_SSE) {
		(void)snprintf(id, sizeof(id), "%" PRIu64, ev->id);
		return sse_event(x, ev->id ? id : NULL, ev->type, ev->json, ev->len);
	}
	line_of(ev, head, iov);
	return http_stream_writev(x, iov, 3);
}

/* Everything that can be written now. @o may be gone afterwards. */
static void pump(struct stream_out *o)
{
	struct http_exchange *x = o->x;
	const struct stream_event *ev = NULL;
	bool lost = false;

	while (!o->dead && !http_stream_congested(x) &&
	       (ev = stream_reader_next(&o->reader, &lost)))
		o->dead = write_event(x, o->format, ev) < 0;
	if (o->dead)
		return;
	if (lost) {
		stop(o);
		http_stream_abort(x);
	} else if (stream_log_ended(o->reader.log) &&
		   o->reader.next_id > stream_log_last(o->reader.log)) {
		stop(o);
		http_stream_end(x);
	}
}

static void on_wake(struct stream_reader *r)
{
	pump(r->arg);
}

static void on_drain(struct http_exchange *x)
{
	struct request_context *v = context_of(x);

	if (v && v->work)
		pump(v->work);
}

/* ---- the beginning ------------------------------------------------------------------------- */

static void send_head(struct http_exchange *x, enum stream_format format)
{
	reply_headers(x);
	if (format == STREAM_NDJSON)
		http_stream(x, 200, "application/x-ndjson");
	else
		sse_begin(x);
}

/* Attach, or answer why not. */
static struct stream_out *begin(struct http_exchange *x, struct stream_log *l, uint64_t cursor)
{
	struct stream_out *o = calloc(1, sizeof(*o));

	if (!o) {
		reply_no_memory(x);
		return NULL;
	}
	o->reader.wake = on_wake;
	o->reader.arg = o;
	int r = stream_reader_attach(&o->reader, l, cursor);

	if (r == 0)
		return o;
	free(o);
	if (r == -ESTALE)
		reply_error(x, 410, "cursor_gone", "cursor",
			    "read the output by offset, or the result",
			    "the events after %" PRIu64
			    " are not kept any more; the first is %" PRIu64,
			    cursor, stream_log_first(l));
	else if (r == -EBUSY)
		reply_retry(x, 429, 1, "too_many_readers",
			    "close a stream of this execution, or read the output by offset",
			    "%u streams read this execution already", STREAM_READERS_MAX);
	else
		reply_error(x, 422, "out_of_range", "cursor", NULL,
			    "there is no event %" PRIu64 " yet; the last is %" PRIu64, cursor,
			    stream_log_last(l));
	return NULL;
}

void stream_out_begin(struct http_exchange *x, struct stream_log *l, uint64_t cursor,
		      enum stream_format format)
{
	struct stream_out *o = begin(x, l, cursor);
	enum stream_format begun = context_of(x)->prelude;

	if (!o)
		return;
	o->x = x;
	o->format = begun != STREAM_NONE ? begun : format;
	context_wait(x, o, on_gone);
	if (begun == STREAM_NONE)
		send_head(x, format);
	http_stream_on_drain(x, on_drain);
	if (strcmp(http_request(x)->method, "HEAD") == 0) {
		stop(o);
		http_stream_end(x);
		return;
	}
	pump(o);
}

void stream_out_prelude(struct http_exchange *x, enum stream_format format)
{
	context_of(x)->prelude = format;
	send_head(x, format);
}

void stream_out_note(struct http_exchange *x, const char *type, const char *json, size_t len)
{
	const struct stream_event ev = { .type = type,
					 .json = (char *)(uintptr_t)json,
					 .len = len };

	if (!http_stream_congested(x))
		(void)write_event(x, context_of(x)->prelude, &ev);
}

void stream_out_last(struct http_exchange *x, const char *type, const char *json, size_t len)
{
	const struct stream_event ev = { .type = type,
					 .json = (char *)(uintptr_t)json,
					 .len = len };

	if (write_event(x, context_of(x)->prelude, &ev) == 0)
		http_stream_end(x);
}

bool stream_out_cursor(struct http_exchange *x, uint64_t *ret)
{
	const char *last = http_header(x, "last-event-id");
	_buf_ struct buf text = BUF_INIT(64);
	struct err e;

	*ret = 0;
	if (!http_query(x, "cursor", &text))
		(void)buf_puts(&text, last ? last : "0");
	if (!text.err && num_parse_u64(buf_str(&text), 0, INT64_MAX, ret, &e) == 0)
		return true;
	reply_error(x, 422, "invalid_value", "cursor", "use the id of the last event you have",
		    "invalid event id");
	return false;
}
