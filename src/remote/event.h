/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event.h - One line of an execution's stream, {"id":7,"type":"stdout","data":"..."}, taken apart.
 *
 * Bytes that are not UTF-8 can not be in a JSON string: the daemon puts U+FFFD in their place. A
 * program may write that character itself, so text that holds it is only maybe what was written;
 * see event_text().
 */
#ifndef CAISSON_REMOTE_EVENT_H
#define CAISSON_REMOTE_EVENT_H

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

/* event_parse() - 0, or -EBADMSG for what is no object with a type. */
int event_parse(const char *line, size_t len, struct event *ret);
void event_free(struct event *ev);

/* event_is() - Whether it is of this type. */
bool event_is(const struct event *ev, const char *type);

/*
 * event_text() - Append what a program wrote, from the members data_base64 or data.
 * Return: 1 when these are its very bytes, 0 when some may have been replaced, -EBADMSG without
 * either.
 */
int event_text(const struct event *ev, struct buf *out);

/* An event of output without the rest of it. */
struct event_output {
	uint64_t id;
	bool is_stderr;
	bool exact; /* as event_text() says it */
};

/*
 * event_quick() - An event of output, written as the daemon writes it, in one go: its bytes are all
 * that is in @out then. Return: false when it has to be looked at by event_parse().
 */
bool event_quick(const char *line, size_t len, struct event_output *ret, struct buf *out);

#endif
