/* SPDX-License-Identifier: Apache-2.0 */
/* event.c - The JSON form of the events of an execution. */
#include "front/sandbox/event.h"

#include <errno.h>

#include "base/buf.h"
#include "base/json.h"
#include "front/support/json_alloc.h"

const char *event_name(enum event_kind kind)
{
	static const char *const names[EVENT_KINDS_] = {
		[EVENT_STDOUT] = "stdout",
		[EVENT_STDERR] = "stderr",
		[EVENT_DISPLAY] = "display",
		[EVENT_RESULT] = "result",
		[EVENT_ERROR] = "error",
		[EVENT_INPUT_REQUEST] = "input_request",
		[EVENT_CLEAR_OUTPUT] = "clear_output",
	};

	return names[kind];
}

void event_json(const struct event *ev, struct buf *out)
{
	struct json j;

	if (ev->members) {
		json_alloc_dump(out, ev->members);
		return;
	}
	json_init(&j, out);
	json_object_begin(&j);
	json_key(&j, "data");
	if (json_strn(&j, ev->text, ev->len)) {
		json_key(&j, "data_base64");
		json_base64(&j, ev->text, ev->len);
	}
	json_object_end(&j);
	if (json_finish(&j) < 0 && !out->err)
		out->err = -EMSGSIZE;
}
