/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tunnel.h - A connection to the daemon after an HTTP upgrade: bytes both ways, over its socket,
 * TCP or TLS.
 *
 * libcurl opens it, TLS included, and hands it over (CURLOPT_CONNECT_ONLY), so certificates are
 * checked as for every other call. Only opening waits.
 */
#ifndef CAISSON_REMOTE_TUNNEL_H
#define CAISSON_REMOTE_TUNNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "http_client/call.h"

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

#endif
