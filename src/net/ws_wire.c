/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ws_wire.c - The frames of a WebSocket, by wslay.
 *
 * Theory of operation: input is kept in one buffer from which wslay reads; frames that wslay writes
 * go into another, and from there to the connection in one write. wslay checks masks, reserved
 * bits, opcodes, lengths, fragments and UTF-8, answers pings and echoes closes. It runs without its
 * own buffering of messages, which would cost an allocation for each fragment: fragments are
 * gathered here, and the size of a whole message and the number of frames are checked when a frame
 * begins. Two errors that wslay accepts or leaves without a code are handled here as well: an error
 * in a frame's header is 1002, and so is a close frame of one byte. A peer that broke the protocol
 * gets one close frame, from here, and is not waited for.
 *
 * wslay gets its input frame by frame, a control frame only when it is complete: it checks the
 * UTF-8 of a close reason in each piece that it gets, as if every piece began with a close code. So
 * the answer does not depend on how the peer's bytes were split; and because wslay never holds more
 * than one frame, a pause takes effect at once.
 *
 * The frame budget is a bucket of FRAMES_BURST, refilled with FRAMES_PER_S: a peer that sends
 * faster for longer is closed with 1008. So control frames and empty fragments cost as much as
 * messages.
 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "net/ws_int.h"

#define FRAMES_BURST 2000
#define FRAMES_PER_S 1000
/* Between messages no more than this of a buffer is kept. */
#define KEEP_MAX (64 * 1024)

/* Write what was collected. */
static int write_out(struct ws *w)
{
	int r = w->state == WS_OVER ? -EPIPE : w->out.err;

	if (r == 0 && w->out.len > 0)
		r = conn_write(w->conn, w->out.data, w->out.len);
	if (w->out.cap > KEEP_MAX)
		buf_free(&w->out);
	buf_clear(&w->out);
	if (r < 0)
		ws_cut(w, r);
	return r;
}

/* Collect the output of wslay, and write it. wslay fails only without memory: its own or ours. */
int ws_flush(struct ws *w)
{
	if (wslay_event_send(w->wslay) != 0 && !w->out.err)
		w->out.err = -ENOMEM;
	return write_out(w);
}

static ssize_t on_send(wslay_event_context_ptr ctx, const uint8_t *data, size_t len, int flags,
		       void *arg)
{
	struct ws *w = arg;

	(void)flags;
	if (buf_append(&w->out, data, len) < 0) {
		wslay_event_set_error(ctx, WSLAY_ERR_CALLBACK_FAILURE);
		return -1;
	}
	return (ssize_t)len;
}

/*
 * How many of the next bytes, at most @max, wslay may have: a part of a data frame that begins with
 * a whole header, or a whole control frame. wslay asks when it has used up what it had, and then
 * has room for more than a control frame can take. A frame that it will refuse need not be
 * complete.
 */
static size_t next_piece(struct ws *w, size_t max)
{
	const unsigned char *p = (const unsigned char *)buf_str(&w->in) + w->off;
	size_t have = w->in.len - w->off;

	if (w->frame_left == 0 && have >= 2) {
		uint64_t len = p[1] & 0x7f;
		size_t extended = len == 126 ? 2 : len == 127 ? 8 : 0;
		size_t head = 2 + extended + (p[1] & 0x80 ? 4 : 0);
		bool control = p[0] & 0x08;

		if (have < head || (control && extended == 0 && have < head + len))
			return 0;
		for (size_t i = 0; i < extended; i++)
			len = (i == 0 ? 0 : len << 8) | p[2 + i];
		w->frame_left = head + (len < UINT64_MAX / 2 ? len : UINT64_MAX / 2);
	}
	if (max > have)
		max = have;
	if (max > w->frame_left)
		max = (size_t)w->frame_left;
	w->frame_left -= max;
	return max;
}

static ssize_t on_recv(wslay_event_context_ptr ctx, uint8_t *to, size_t len, int flags, void *arg)
{
	struct ws *w = arg;

	(void)flags;
	len = w->paused || w->state == WS_OVER ? 0 : next_piece(w, len);
	if (len == 0) {
		wslay_event_set_error(ctx, WSLAY_ERR_WOULDBLOCK);
		return -1;
	}
	memcpy(to, w->in.data + w->off, len);
	w->off += len;
	return (ssize_t)len;
}

/* The peer broke a rule, for which it is closed; wslay reads no further. */
static void breach(struct ws *w, int code, const char *problem)
{
	if (w->broken == 0) {
		w->broken = code;
		w->problem = problem;
	}
	wslay_event_shutdown_read(w->wslay);
}

/* Take one frame out of the bucket. */
static bool spend_frame(struct ws *w)
{
	uint64_t full = FRAMES_BURST * CLOCK_NS_PER_S, now = conn_loop(w->conn)->now_ns,
		 passed = now - w->frames_ns;

	/* An idle second refills FRAMES_PER_S frames; two seconds fill the bucket. */
	w->frames += passed < 2 * CLOCK_NS_PER_S ? passed * FRAMES_PER_S : full;
	if (w->frames > full)
		w->frames = full;
	w->frames_ns = now;
	if (w->frames < CLOCK_NS_PER_S)
		return false;
	w->frames -= CLOCK_NS_PER_S;
	return true;
}

static void on_frame(wslay_event_context_ptr ctx,
		     const struct wslay_event_on_frame_recv_start_arg *frame, void *arg)
{
	struct ws *w = arg;

	(void)ctx;
	w->control = wslay_is_ctrl_frame(frame->opcode);
	if (!spend_frame(w))
		breach(w, WSLAY_CODE_POLICY_VIOLATION, "too many frames");
	else if (!w->control && frame->payload_length > w->message_max - w->message.len)
		breach(w, WSLAY_CODE_MESSAGE_TOO_BIG, "the message is too large");
	else if (frame->opcode == WSLAY_CONNECTION_CLOSE && frame->payload_length == 1)
		breach(w, WSLAY_CODE_PROTOCOL_ERROR, "half a close code");
}

static void on_frame_part(wslay_event_context_ptr ctx,
			  const struct wslay_event_on_frame_recv_chunk_arg *part, void *arg)
{
	struct ws *w = arg;

	(void)ctx;
	if (w->control || w->broken != 0 || w->state != WS_OPEN)
		return;
	if (buf_append(&w->message, part->data, part->data_length) < 0)
		breach(w, WSLAY_CODE_INTERNAL_SERVER_ERROR, "out of memory");
}

static void on_msg(wslay_event_context_ptr ctx, const struct wslay_event_on_msg_recv_arg *msg,
		   void *arg)
{
	struct ws *w = arg;

	(void)ctx;
	if (w->broken != 0)
		return;
	if (wslay_is_ctrl_frame(msg->opcode)) {
		/* A pong goes before the next frame, even before a close: collect it now. */
		if (msg->opcode == WSLAY_PING)
			(void)wslay_event_send(w->wslay);
		return;
	}
	if (w->state == WS_OPEN)
		w->ops->on_message(w, msg->opcode == WSLAY_TEXT_FRAME, buf_str(&w->message),
				   w->message.len);
	if (w->message.cap > KEEP_MAX)
		buf_free(&w->message);
	buf_clear(&w->message);
}

static const struct wslay_event_callbacks callbacks = {
	.recv_callback = on_recv,
	.send_callback = on_send,
	.on_frame_recv_start_callback = on_frame,
	.on_frame_recv_chunk_callback = on_frame_part,
	.on_msg_recv_callback = on_msg,
};

/* Send the peer the reason, and do not wait for it. */
static void fail(struct ws *w, int code, const char *reason)
{
	size_t len = strlen(reason);
	const char head[4] = { (char)0x88, (char)(2 + len), (char)(code >> 8), (char)code };

	if (w->state == WS_OPEN) {
		(void)buf_append(&w->out, head, sizeof(head));
		(void)buf_append(&w->out, reason, len);
		if (write_out(w) < 0)
			return;
	}
	ws_over(w, code);
}

/* wslay has queued a close frame of its own: find the reason. */
static void found_by_wslay(struct ws *w)
{
	static const struct {
		int code;
		const char *problem;
	} problems[] = {
		{ WSLAY_CODE_PROTOCOL_ERROR, "protocol error" },
		{ WSLAY_CODE_INVALID_FRAME_PAYLOAD_DATA, "the text is not UTF-8" },
		{ WSLAY_CODE_MESSAGE_TOO_BIG, "the message is too large" },
	};
	size_t len = w->out.len;

	(void)wslay_event_send(w->wslay);
	w->out.len = len; /* our close frame takes its place */

	int code = wslay_event_get_status_code_sent(w->wslay);

	for (size_t i = 0; i < ARRAY_SIZE(problems); i++)
		if (problems[i].code == code)
			breach(w, code, problems[i].problem);
	breach(w, WSLAY_CODE_PROTOCOL_ERROR, "malformed frame"); /* unless it was one of those */
}

void ws_feed(struct ws *w)
{
	if (w->feeding || w->paused || w->state == WS_OVER)
		return;
	w->feeding = true;

	int r = wslay_event_recv(w->wslay);
	bool closed = wslay_event_get_close_received(w->wslay);

	w->feeding = false;
	buf_consume(&w->in, w->off);
	w->off = 0;
	if (w->state == WS_OVER)
		return;
	if (w->broken == 0 && r == WSLAY_ERR_NOMEM)
		breach(w, WSLAY_CODE_INTERNAL_SERVER_ERROR, "out of memory");
	else if (w->broken == 0 && !closed && !wslay_event_get_read_enabled(w->wslay))
		found_by_wslay(w);
	if (w->broken != 0)
		fail(w, w->broken, w->problem);
	else if (ws_flush(w) == 0 && closed)
		ws_over(w, w->state == WS_CLOSING ? w->code :
						    wslay_event_get_status_code_received(w->wslay));
}

int ws_wire_init(struct ws *w)
{
	if (wslay_event_context_server_init(&w->wslay, &callbacks, w) != 0)
		return -ENOMEM;
	wslay_event_config_set_no_buffering(w->wslay, 1);
	wslay_event_config_set_max_recv_msg_length(w->wslay, w->message_max);
	w->frames = FRAMES_BURST * CLOCK_NS_PER_S;
	w->frames_ns = conn_loop(w->conn)->now_ns;
	return 0;
}
