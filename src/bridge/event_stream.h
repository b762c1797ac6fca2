/* SPDX-License-Identifier: Apache-2.0 */
/* event_stream.h - Read Server-Sent Events as they come. Pure but for memory. */
#ifndef CAISSON_BRIDGE_EVENT_STREAM_H
#define CAISSON_BRIDGE_EVENT_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct event_stream {
	struct buf line; /* that is not complete yet */
	struct buf data; /* of the event that is not complete yet */
	char type[32];
	char id[1024];     /* the last one of the stream; "": none */
	uint64_t retry_ms; /* the last one; only meaningful with has_retry */
	bool has_retry, has_data, after_cr, begun, too_large;
	/* An event with data. @type: "message" when it has none. False: stop. @data may be written
	 * to. */
	bool (*on_event)(void *arg, const char *type, char *data, size_t len);
	void *arg;
};

/* event_stream_init() - @max: bytes of one event. */
void event_stream_init(struct event_stream *v, size_t max);
/* event_stream_feed() - False when the callback was, or an event is too large (v->too_large). */
bool event_stream_feed(struct event_stream *v, const char *data, size_t len);
/* event_stream_cut() - Another stream goes on with it: drop the event that is not complete. */
void event_stream_cut(struct event_stream *v);
void event_stream_free(struct event_stream *v);

#endif
