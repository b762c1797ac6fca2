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

typedef void websocket_on_message(void *arg, bool text, const char *data, size_t len);

/* websocket_open() - Connect and shake hands. NULL with @p. @arg is borrowed. */
struct websocket *websocket_open(const struct api *a, const char *path,
				 websocket_on_message *on_message, void *arg, struct problem *p);
/* websocket_close() - Sends a close frame, without waiting for the answer. NULL is fine. */
void websocket_close(struct websocket *w);

int websocket_fd(const struct websocket *w);
short websocket_events(const struct websocket *w); /* for poll() */

/* websocket_step() - Read and write as far as possible. False: it is over. */
bool websocket_step(struct websocket *w);

/* websocket_send() - Queue one message. False: it is over. */
bool websocket_send(struct websocket *w, bool text, const void *data, size_t len);

/* websocket_queued() - Bytes that wait to be sent. A caller that sees many adds no more. */
size_t websocket_queued(const struct websocket *w);

/* websocket_accept() - The answer that a server must give to @key. @ret: 29 bytes. Pure. */
void websocket_accept(const char *key, char ret[29]);

#endif
