/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ws.h - A WebSocket after its handshake, framing by wslay.
 *
 * Whole messages up, whole messages down. Control frames, fragments, masking, UTF-8 and close codes
 * (1002, 1007, 1009) are handled here. A budget of frames per second, then 1008, bounds ping floods
 * and endless 1-byte fragments. A peer that does not answer our ping within the deadline is gone.
 *
 * Made by http_upgrade_ws(). Every function may be called from inside every callback but on_close.
 */
#ifndef CAISSON_NET_WS_H
#define CAISSON_NET_WS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct conn;
struct ws;

struct ws_ops {
	/* @data is NUL-terminated after @len bytes, valid UTF-8 when @text, and gone after the
	 * call. */
	void (*on_message)(struct ws *w, bool text, const char *data, size_t len);
	void (*on_drain)(struct ws *w); /* may be NULL */
	/* The last call. @code: the peer's (1005: it gave none), or ours when we closed first and
	 * the peer agreed or had broken the protocol; 1006 when the connection broke. */
	void (*on_close)(struct ws *w, int code);
};

/* ws_send() - One message. -EPIPE when closing; -EILSEQ for text that is not UTF-8. Without memory
 * for it the connection breaks: the peer has to see that a message is missing. */
int ws_send(struct ws *w, bool text, const void *data, size_t len);
/* ws_send_buf() - The same of a buffer, which may have failed for the same reason. */
int ws_send_buf(struct ws *w, bool text, const struct buf *b);
bool ws_congested(const struct ws *w);
/* ws_pause() - Stop, resume reading: no message comes while it is paused. */
void ws_pause(struct ws *w, bool pause);
/* ws_close() - Begin the closing handshake; the peer has a deadline. @reason: UTF-8 or NULL; cut
 * at 123 bytes. */
void ws_close(struct ws *w, int code, const char *reason);
void *ws_user(const struct ws *w);
struct conn *ws_conn(const struct ws *w);

/* How often a ping is sent, how long its answer may take, how long the peer may take to close. */
struct ws_times {
	uint64_t ping_ns, pong_ns, close_ns;
};

/* ws_set_times() - Other than the defaults (30 s, 30 s, 5 s). */
void ws_set_times(struct ws *w, const struct ws_times *times);

/* For http_upgrade_ws() alone. ws_new() touches nothing of the connection; ws_start() takes it
 * over, together with the memory of @early, input that came behind the handshake. */
struct ws *ws_new(struct conn *c, const struct ws_ops *ops, void *user, size_t message_max);
void ws_start(struct ws *w, struct buf *early);

#endif
