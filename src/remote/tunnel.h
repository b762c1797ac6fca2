/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tunnel.h - A connection to the daemon after an HTTP upgrade, over its socket, TCP or TLS: bytes
 * both ways, or the client's end of a WebSocket.
 *
 * libcurl opens it, TLS included, and hands it over (CURLOPT_CONNECT_ONLY), so certificates are
 * checked as for every other call. The frames of a WebSocket are wslay's. Only opening waits: wait
 * for websocket_fd(), then call websocket_step().
 */
#ifndef CAISSON_REMOTE_TUNNEL_H
#define CAISSON_REMOTE_TUNNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "http_client/http_call.h"

struct api;
struct problem;

struct tunnel {
	struct http_call http; /* opened it */
	curl_socket_t fd;
	bool tls;
	struct buf early; /* came behind the answer */
	char answer[64];  /* the header that was asked for; empty: it is not there */
};

/*
 * tunnel_open() - GET @path and switch to @protocol.
 * @headers: more of them, each with its CRLF, or ""
 * @answer: name of a header to keep of the answer, or NULL
 * Return: 0, or -1 with @p. tunnel_close() in every case.
 */
int tunnel_open(struct tunnel *l, const struct api *a, const char *path, const char *protocol,
		const char *headers, const char *answer, struct problem *p);
void tunnel_close(struct tunnel *l);

/* Bytes; 0 at the end of the stream; -EAGAIN: wait for fd; -EPIPE: it broke. */
ssize_t tunnel_recv(struct tunnel *l, void *data, size_t size);
ssize_t tunnel_send(struct tunnel *l, const void *data, size_t len);

/* tunnel_finish() - Close our direction. Over TLS that is not possible, and nothing is done. */
void tunnel_finish(struct tunnel *l);

/* ---- WebSocket --------------------------------------------------------------------------- */

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
