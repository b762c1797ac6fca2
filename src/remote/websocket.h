/* SPDX-License-Identifier: Apache-2.0 */
/*
 * websocket.h - The client's end of a WebSocket to the daemon, over its socket, TCP or TLS.
 *
 * Bytes and TLS are libcurl's (a connection without a request), the frames are wslay's. Nothing
 * blocks after websocket_open(): wait for websocket_fd(), then call websocket_step().
 */
#ifndef CAISSON_REMOTE_WEBSOCKET_H
#define CAISSON_REMOTE_WEBSOCKET_H

#include <stdbool.h>
#include <stddef.h>

struct api;
struct problem;
struct websocket;

struct websocket_ops {
	void (*on_message)(void *arg, bool text, const char *data, size_t len);
};

/* websocket_open() - Connect and shake hands. NULL with @p. @ops and @arg are borrowed. */
struct websocket *websocket_open(const struct api *a, const char *path,
				 const struct websocket_ops *ops, void *arg, struct problem *p);
void websocket_close(struct websocket *w); /* says goodbye first, without waiting; NULL is fine */

int websocket_fd(const struct websocket *w);
short websocket_events(const struct websocket *w); /* for poll() */

/* websocket_step() - Read and write what can be. False: it is over. */
bool websocket_step(struct websocket *w);

/* websocket_send() - Queue one message. False: it is over. */
bool websocket_send(struct websocket *w, bool text, const void *data, size_t len);

/* websocket_queued() - Bytes that wait to be sent: do not add to many. */
size_t websocket_queued(const struct websocket *w);

/* websocket_accept() - What a server must answer to @key. @ret: 29 bytes. Pure. */
void websocket_accept(const char *key, char ret[29]);

#endif
