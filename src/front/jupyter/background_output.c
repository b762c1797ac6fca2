/* SPDX-License-Identifier: Apache-2.0 */
/*
 * background_output.c - Output while no execution runs, as a notebook shows it: below the notebook
 * cell that was executed last.
 *
 * Threads and processes that code has left behind may print at any time and without end. The pipes
 * of the interpreter are read all the time; a token bucket bounds how much of that goes to clients.
 * Output that does not fit, or that a client does not read, is counted and dropped, and the next
 * message that fits has the number of lost bytes.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "front/jupyter/jupyter.h"
#include "front/sandbox/sandboxes.h"

#define ROOM_MAX (256u << 10)
#define ROOM_PER_MS 64u   /* refilled: 64 KB in a second */
#define MESSAGE_COST 512u /* of each message, besides its bytes */
#define PARENT_MAX (16u << 10)

void jbackground_parent(struct jkernel *k, const char *header)
{
	free(k->background.parent);
	k->background.parent = strlen(header) <= PARENT_MAX ? strdup(header) : NULL;
	k->background.cut[0].n_tail = k->background.cut[1].n_tail = 0;
}

void jbackground_free(struct jkernel *k)
{
	free(k->background.parent);
	k->background.parent = NULL;
}

static bool has_room(struct jbackground *l, uint64_t now_ns, uint64_t cost)
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

static void publish(struct jkernel *k, const struct buf *content)
{
	const struct jrequest parent = { .kernel = k, .header = k->background.parent };

	jkernel_publish(k, k->background.parent ? &parent : NULL, "stream", content);
}

static void publish_dropped(struct jkernel *k)
{
	_buf_ struct buf b = BUF_INIT(256);

	if (!k->background.dropped)
		return;
	(void)buf_printf(&b,
			 "{\"name\":\"stderr\",\"text\":\"[%" PRIu64
			 " bytes are missing: too much was printed between executions]\\n\"}",
			 k->background.dropped);
	k->background.dropped = 0;
	publish(k, &b);
}

/* As text: bytes that are not UTF-8 are replaced, as in the output of an execution. */
static void publish_text(struct jkernel *k, enum kernel_stream stream, const char *data, size_t len)
{
	_buf_ struct buf room = BUF_INIT(1u << 20), b = BUF_INIT(1u << 20);
	struct json j;
	size_t n;
	const char *text = text_join(&k->background.cut[stream], data, len, false, &room, &n);

	if (room.err || n == 0)
		return;
	json_init(&j, &b);
	json_object_begin(&j);
	json_member_str(&j, "name", stream == STREAM_STDOUT ? "stdout" : "stderr");
	json_key(&j, "text");
	(void)json_strn(&j, text, n);
	json_object_end(&j);
	if (json_finish(&j) == 0)
		publish(k, &b);
}

void jupyter_background_output(struct sandbox *s, const struct language *l,
			       enum kernel_stream stream, const char *data, size_t len)
{
	struct jkernel *k = s->jupyter;

	if (!k || k->language != l || (!k->clients && !k->backlogs))
		return;
	if (jkernel_congested(k) ||
	    !has_room(&k->background, s->sandboxes->loop->now_ns, len + MESSAGE_COST)) {
		k->background.dropped += len;
		return;
	}
	publish_dropped(k);
	publish_text(k, stream, data, len);
}
