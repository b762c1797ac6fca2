/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_out.h - A stream log on its way to a client: Server-Sent Events, or JSON lines.
 *
 * SSE: `id`, `event` and `data`, and a comment every 15 seconds so that nobody on the way takes
 * silence for an end. NDJSON: {"id":7,"type":"stdout",...members of the event}. Both end after the
 * last event of the log. A client that reads slowly makes the log wait, not grow; one that goes
 * away has no other effect than that: what it reads about goes on, and it may come back with the
 * last id it saw.
 */
#ifndef CAISSON_FRONT_STREAM_OUT_H
#define CAISSON_FRONT_STREAM_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "front/output/stream_log.h"

struct buf;
struct http_exchange;

enum stream_format { STREAM_NONE, STREAM_SSE, STREAM_NDJSON };

/*
 * stream_format_of() - The format that Accept asks for; @wanted (the member `stream` of a body)
 * makes SSE of an Accept that names neither.
 */
enum stream_format stream_format_of(const struct http_exchange *x, bool wanted);

/*
 * stream_out_begin() - Answer @x with the events of @l after @cursor, as they come. Uses the
 * request context's work and gone; the exchange must not be touched afterwards.
 */
void stream_out_begin(struct http_exchange *x, struct stream_log *l, uint64_t cursor,
		      enum stream_format format);

/*
 * stream_out_prelude() - Begin the answer of @x with events that are in no log: their number is not
 * known to anybody, and they have no id. The later answer becomes events as well: those of
 * stream_out_begin(), or the last one, `done` or `refused` with the object that would have been the
 * answer.
 */
void stream_out_prelude(struct http_exchange *x, enum stream_format format);
/* stream_out_note() - One such event. A client that reads slowly does not get it. */
void stream_out_note(struct http_exchange *x, const char *type, const char *json, size_t len);
/* stream_out_last() - The last one. The exchange must not be touched afterwards. */
void stream_out_last(struct http_exchange *x, const char *type, const char *json, size_t len);

/*
 * stream_out_cursor() - Where a client wants to go on: ?cursor=, else Last-Event-ID, else 0.
 * Return: false when it was answered with an error.
 */
bool stream_out_cursor(struct http_exchange *x, uint64_t *ret);

/* stream_out_line() - One event as a line of NDJSON. Pure. */
void stream_out_line(struct buf *out, const struct stream_event *ev);

#endif
