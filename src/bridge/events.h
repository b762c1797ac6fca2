/* SPDX-License-Identifier: Apache-2.0 */
/* events.h - Read Server-Sent Events as they come. Pure but for memory. */
#ifndef CAISSON_BRIDGE_EVENTS_H
#define CAISSON_BRIDGE_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define EVENTS_ID_MAX 1024

struct events {
	struct buf line; /* that is not complete yet */
	struct buf data; /* of the event that is not complete yet */
	char type[32];
	char id[EVENTS_ID_MAX]; /* the last one of the stream; "": none */
	uint64_t retry_ms;      /* the last one; only meaningful with has_retry */
	bool has_retry, has_data, after_cr, begun, too_large;
	/* An event with data. @type: "message" when it has none. False: stop. @data may be written
	 * to. */
	bool (*on_event)(void *arg, const char *type, char *data, size_t len);
	void *arg;
};

/* events_init() - @max: bytes of one event. */
void events_init(struct events *v, size_t max);
/* events_feed() - False when the callback said so, or an event is too large (v->too_large). */
bool events_feed(struct events *v, const char *data, size_t len);
void events_free(struct events *v);

#endif
