/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event.h - The events that an execution reports while it runs.
 *
 * The core makes each event once, as a struct. The adapter of a wire that shows events live (MCP
 * progress, Jupyter messages) receives it through the execution's sink; the stream log of the
 * execution's record keeps it as JSON for HTTP clients, who may come back for it later. Everything
 * in an event is borrowed: it is valid until the call returns.
 */
#ifndef CAISSON_FRONT_EVENT_H
#define CAISSON_FRONT_EVENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct buf;

enum event_kind {
	EVENT_STDOUT,
	EVENT_STDERR,
	EVENT_DISPLAY,
	EVENT_RESULT,
	EVENT_ERROR,
	EVENT_INPUT_REQUEST,
	EVENT_CLEAR_OUTPUT,
	EVENT_KINDS_
};

struct event {
	enum event_kind kind;
	/* STDOUT, STDERR: bytes that end with a whole character; some may not be UTF-8. */
	const char *text;
	size_t len;
	/*
	 * The members of the other kinds. DISPLAY: data, metadata, display_id, update,
	 * truncated. RESULT: a MIME bundle. ERROR: name, value, traceback. INPUT_REQUEST: id,
	 * prompt, password. CLEAR_OUTPUT: wait. Only `data` of DISPLAY and `id` of INPUT_REQUEST
	 * are always there.
	 */
	const json_t *members;
	const json_t *metadata; /* RESULT: of the bundle; NULL: none */
	bool truncated;         /* RESULT: a part of the bundle is left out */
};

/* event_name() - The name that every wire uses for it: stdout, display, ... Static. */
const char *event_name(enum event_kind kind);

/*
 * event_json() - Its members as a JSON object. Text becomes `data`, in which U+FFFD replaces bytes
 * that are not UTF-8, and in that case also `data_base64`. On failure @out->err is set.
 */
void event_json(const struct event *ev, struct buf *out);

#endif
