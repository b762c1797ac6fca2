/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line.h - A connection to the daemon that has left HTTP: bytes both ways, over its socket, TCP or
 * TLS.
 *
 * libcurl opens it, TLS and all, and hands it over (CURLOPT_CONNECT_ONLY): so certificates are
 * checked as for every other call. Opening waits, the rest never does.
 */
#ifndef CAISSON_REMOTE_LINE_H
#define CAISSON_REMOTE_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "http_client/call.h"

struct api;
struct problem;

struct line {
	struct http_call http; /* opened it */
	curl_socket_t fd;
	bool tls;
	struct buf early; /* came behind the answer */
	char answer[64];  /* the header that was asked for; empty: it is not there */
};

/*
 * line_open() - GET @path and switch to @protocol.
 * @headers: more of them, each with its CRLF, or ""
 * @answer: name of a header to keep of the answer, or NULL
 * Return: 0, or -1 with @p. line_close() in every case.
 */
int line_open(struct line *l, const struct api *a, const char *path, const char *protocol,
	      const char *headers, const char *answer, struct problem *p);
void line_close(struct line *l);

/* Bytes; 0 at the end of the stream; -EAGAIN: wait for fd; -EPIPE: it broke. */
ssize_t line_recv(struct line *l, void *data, size_t size);
ssize_t line_send(struct line *l, const void *data, size_t len);

/* line_finish() - Say that no more will come, where that can be said: not over TLS. */
void line_finish(struct line *l);

#endif
