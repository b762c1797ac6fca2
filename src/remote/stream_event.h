/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_event.h - One line of an execution's stream, {"id":7,"type":"stdout","data":"..."}, taken
 * apart.
 *
 * A JSON string cannot hold bytes that are not UTF-8: the daemon writes U+FFFD for them, and then
 * adds the bytes themselves as data_base64.
 */
#ifndef CAISSON_REMOTE_STREAM_EVENT_H
#define CAISSON_REMOTE_STREAM_EVENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

struct event {
	json_t *root; /* owned, an object */
	uint64_t id;  /* 0: it has none */
	const char *type;
};

/* event_parse() - 0, or -EBADMSG for anything but an object with a type. */
int event_parse(const char *line, size_t len, struct event *ret);
void event_free(struct event *ev);
#define _event_ __attribute__((cleanup(event_free)))

/* event_is() - Whether it is of this type. */
bool event_is(const struct event *ev, const char *type);

/* event_text() - Append the bytes that a program wrote. 0, or -EBADMSG: the event has none. */
int event_text(const struct event *ev, struct buf *out);

/*
 * event_quick() - Read an event of output in the form in which the daemon writes it, without a JSON
 * tree; @out then has the program's bytes alone. Return: false when event_parse() has to read it.
 */
bool event_quick(const char *line, size_t len, uint64_t *ret_id, bool *ret_is_stderr,
		 struct buf *out);

#endif
