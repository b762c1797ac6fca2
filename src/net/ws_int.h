/* SPDX-License-Identifier: Apache-2.0 */
/* ws_int.h - The inside of a WebSocket, for ws.c (its life) and ws_wire.c (its frames) alone. */
#ifndef CAISSON_NET_WS_INT_H
#define CAISSON_NET_WS_INT_H

#include <wslay/wslay.h>

#include "base/buf.h"
#include "net/conn.h"
#include "net/loop.h"
#include "net/ws.h"

enum ws_state {
	WS_OPEN,
	WS_CLOSING, /* our close frame is out, the peer's is awaited, a deadline runs */
	WS_OVER,    /* conn_finish() or conn_close() was called */
};

struct ws {
	struct conn *conn;
	const struct ws_ops *ops;
	void *user;
	struct ws_times times;
	wslay_event_context_ptr wslay;
	enum ws_state state;
	int code;            /* for on_close */
	int broken;          /* the close code of an error, found while wslay reads */
	const char *problem; /* its reason */
	bool feeding, paused;
	bool control;       /* the current frame is a control frame */
	bool pinged, heard; /* a ping is out; bytes came since */
	uint64_t pinged_ns;
	uint64_t said_at; /* conn_given() after the ping or close that is to be answered */
	uint64_t frames, frames_ns; /* the bucket, in billionths of a frame; when it was filled */
	size_t message_max;
	struct buf in, out, message;
	size_t off;          /* of in: already read by wslay */
	uint64_t frame_left; /* of the frame that wslay is reading */
	struct deferred again;
};

/* ws_over() - Finish the connection. ws_cut() - Close it at once, 1006. */
void ws_over(struct ws *w, int code);
void ws_cut(struct ws *w, int why);

/* ws_wire_init() - Make w->wslay, fill the frame budget. 0 or -ENOMEM. */
int ws_wire_init(struct ws *w);
/* ws_flush() - Write the output of wslay. 0, or a negative errno when the connection ended. */
int ws_flush(struct ws *w);
/* ws_feed() - Let wslay read the input, and act on the result. */
void ws_feed(struct ws *w);

#endif
