/* SPDX-License-Identifier: Apache-2.0 */
/*
 * late.c - What is printed while no execution runs, as a notebook shows it: below the cell that was
 * executed last.
 *
 * Threads and processes that code has left behind print whenever they like, and for ever. A
 * kernel's pipes are read all the time; how much of that is passed on is bounded here, by a bucket:
 * what does not fit, or would go to somebody who does not read, is counted and not kept, and the
 * next message that fits says so.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "front/jupyter/jupyter.h"
#include "front/support/front.h"

#define ROOM_MAX (256u << 10)
#define ROOM_PER_MS 64u   /* bytes that come back: 64 KB in a second */
#define MESSAGE_COST 512u /* of a message, whatever is in it */
#define PARENT_MAX (16u << 10)

void jlate_parent(struct jkernel *k, const char *header)
{
	free(k->late.parent);
	k->late.parent = strlen(header) <= PARENT_MAX ? strdup(header) : NULL;
	k->late.cut[0].n_tail = k->late.cut[1].n_tail = 0;
}

void jlate_free(struct jkernel *k)
{
	free(k->late.parent);
	k->late.parent = NULL;
}

static bool has_room(struct jlate *l, uint64_t now_ns, uint64_t cost)
{
	uint64_t ms = l->filled_ns ? (now_ns - l->filled_ns) / CLOCK_NS_PER_MS : ROOM_MAX;

	if (ms > 0) {
		l->room = ms < ROOM_MAX ? l->room + ms * ROOM_PER_MS : ROOM_MAX;
		l->room = l->room < ROOM_MAX ? l->room : ROOM_MAX;
		l->filled_ns = now_ns;
	}
	if (l->room < cost)
		return false;
	l->room -= cost;
	return true;
}

static void say(struct jkernel *k, const struct buf *content)
{
	const struct jrequest parent = { .kernel = k, .header = k->late.parent };

	jkernel_publish(k, k->late.parent ? &parent : NULL, "stream", content);
}

static void say_dropped(struct jkernel *k)
{
	_buf_ struct buf b = BUF_INIT(256);

	if (!k->late.dropped)
		return;
	(void)buf_printf(&b,
			 "{\"name\":\"stderr\",\"text\":\"[%" PRIu64
			 " bytes are missing: too much was printed between executions]\\n\"}",
			 k->late.dropped);
	k->late.dropped = 0;
	say(k, &b);
}

/* Of its text alone: bytes that are none are replaced in it, as in what an execution prints. */
static void say_text(struct jkernel *k, enum kernel_stream stream, const char *data, size_t len)
{
	_buf_ struct buf event = BUF_INIT(1u << 20), b = BUF_INIT(1u << 20);
	struct json j;

	json_init(&j, &event);
	json_object_begin(&j);
	capture_data(&k->late.cut[stream], data, len, false, &j);
	json_object_end(&j);
	if (json_finish(&j) < 0)
		return;
	json_t *o = json_loadb(buf_str(&event), event.len, JSON_ALLOW_NUL, NULL);
	const json_t *text = json_object_get(o, "data");

	json_init(&j, &b);
	json_object_begin(&j);
	json_member_str(&j, "name", stream == STREAM_STDOUT ? "stdout" : "stderr");
	json_key(&j, "text");
	(void)json_strn(&j, json_string_value(text), json_string_length(text));
	json_object_end(&j);
	if (json_finish(&j) == 0 && json_string_length(text) > 0)
		say(k, &b);
	json_decref(o);
}

void jupyter_late_output(struct sandbox *s, const struct language *l, enum kernel_stream stream,
			 const char *data, size_t len)
{
	struct jkernel *k = s->jupyter;

	if (!k || k->language != l || (!k->lines && !k->held))
		return;
	if (jkernel_congested(k) || !has_room(&k->late, s->f->loop.now_ns, len + MESSAGE_COST)) {
		k->late.dropped += len;
		return;
	}
	say_dropped(k);
	say_text(k, stream, data, len);
}
