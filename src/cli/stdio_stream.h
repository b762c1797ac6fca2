/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stdio_stream.h - One direction of a program's stdio: carry bytes, count them, keep some, never
 * block.
 */
#ifndef CAISSON_CLI_STDIO_STREAM_H
#define CAISSON_CLI_STDIO_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define STREAM_CHUNK 65536u

struct pollfd;

struct stream {
	int from, to;    /* -1: closed. to is -1 for a stream that is only captured */
	bool own_to;     /* close `to` at end of file (a pipe into the cell) */
	bool to_is_file; /* a regular file takes any amount at once */
	bool from_is_socket, to_is_socket;
	uint64_t bytes;   /* read so far */
	struct buf *keep; /* captured beginning, or NULL */
	uint64_t *budget; /* bytes that may still come, shared between streams; NULL: any */
	int error;        /* why `to` took no more, as errno; 0 none */
	bool over;        /* more came than the budget allowed; what was too much is dropped */
	size_t off, len;  /* pending[off..len) waits for `to` */
	char *pending;    /* STREAM_CHUNK bytes, made at first use */
};

/*
 * stream_stdio() - A descriptor for the file behind @fd that never blocks us, and does not change
 * how others use it.
 * @flags: O_RDONLY or O_WRONLY
 *
 * Our stdio is shared with our caller, so it must not be made non-blocking. Pipes and
 * terminals are opened once more instead, sockets are asked not to wait each time, files never
 * do. Return: a descriptor of our own, or -errno.
 */
int stream_stdio(int fd, int flags);

/* stream_open() - @from is owned from now on; @to is borrowed unless own_to. */
void stream_open(struct stream *s, int from, int to, bool own_to, struct buf *keep);

void stream_close(struct stream *s);

/* stream_active() - Is there anything left to do? */
bool stream_active(const struct stream *s);

/* stream_poll() - Fill one pollfd with the event to wait for; its fd is -1 without an event. */
void stream_poll(const struct stream *s, struct pollfd *p);

/* stream_step() - Move bytes after poll() reported @revents. */
void stream_step(struct stream *s, short revents);

#endif
