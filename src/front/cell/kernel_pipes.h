/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_pipes.h - The host's end of one kernel: two pipes of JSON lines, two of output.
 *
 * Untrusted code controls everything that comes out of a kernel: it may be forged, deep, endless or
 * broken. Lines are bounded and parsed strictly; invalid data ends the kernel, never the daemon.
 * The cell (its pid 1, or the warden) reports how the process ended.
 */
#ifndef CAISSON_FRONT_KERNEL_PIPES_H
#define CAISSON_FRONT_KERNEL_PIPES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "front/cell/language.h"
#include "net/loop.h"

#define KERNEL_LINE_MAX (16u << 20)
#define KERNEL_DEPTH_MAX 64u
#define KERNEL_VALUES_MAX 100000u
#define KERNEL_IDLE_MAX (1u << 20) /* a picture of a background task */
#define KERNEL_IDLE_KEEP (64u << 10)

struct err;
struct kernel_pipes;

enum kernel_stream { STREAM_STDOUT, STREAM_STDERR };

struct kernel_pipes_ops {
	/* A message: an object with a string "type". Borrowed. The output before it has come. */
	void (*message)(struct kernel_pipes *k, const char *type, json_t *m);
	void (*output)(struct kernel_pipes *k, enum kernel_stream s, const char *data, size_t len);
	/* It broke the protocol (@why, static text), or closed its channel (@closed): then it may
	 * just be dead. Called once. */
	void (*broken)(struct kernel_pipes *k, const char *why, bool closed);
	/* It has read what waited for it. May be NULL. */
	void (*drained)(struct kernel_pipes *k);
};

struct kernel_pipes {
	struct loop *loop;
	const struct kernel_pipes_ops *ops;
	void *owner;
	const struct language *language;
	struct watch in, out, streams[2]; /* host's ends: in is written */
	struct buf line, pending;
	size_t scanned;  /* of line, without a newline */
	size_t taken;    /* of line, by messages that were handled in this round */
	size_t ahead[2]; /* of output that may still go before the line at hand */
	bool idle, paused, held, draining, over;
	bool deaf;         /* the other end of in is closed */
	bool half;         /* a part of pending has been written */
	bool joined;       /* adopted: the former front may have read half of the first line */
	uint32_t *writing; /* 1 while a message may be half written; or NULL */
	struct deferred resume;
	uint64_t stalled_ns; /* time that it blocked us: base/foreign.h */
	struct timer slow; /* idle, and it holds more than it may keep; or deaf, and still there */
};

/* Host's ends in the order in which kernels hand them over. */
enum { KERNEL_FD_IN, KERNEL_FD_OUT, KERNEL_FD_STDOUT, KERNEL_FD_STDERR, KERNEL_FDS };

/* kernel_pipes_attach() - @fds are the kernel's from now on, also on failure. */
int kernel_pipes_attach(struct kernel_pipes *k, struct loop *loop, const struct language *language,
			const struct kernel_pipes_ops *ops, void *owner, const int fds[KERNEL_FDS],
			struct err *e);
void kernel_pipes_detach(struct kernel_pipes *k); /* close everything; idempotent */

/* kernel_pipes_tell() - Set *@writing to 1 while a message may be half written, and to 0 otherwise.
 * @writing: may be NULL. */
void kernel_pipes_tell(struct kernel_pipes *k, uint32_t *writing);

/*
 * kernel_pipes_send() - One message, a whole JSON object without its newline. Queued when the pipe
 * is full. A kernel that lets more wait than there is room for is broken, as is one that @json,
 * with an error in it, was too large for.
 */
void kernel_pipes_send(struct kernel_pipes *k, const struct buf *json);

/* kernel_pipes_drain() - It is over: hand up what is in its pipes (bounded), paused or not. */
void kernel_pipes_drain(struct kernel_pipes *k);

/*
 * kernel_pipes_pause() - Read neither its output nor its messages, because their receiver is not
 * ready for more. After a pause they come in the same order, at the end of the round at the
 * earliest.
 */
void kernel_pipes_pause(struct kernel_pipes *k, bool pause);

/*
 * kernel_idle() - Whether no execution runs: then half a line and messages that it does not read
 * may together be KERNEL_IDLE_MAX for a moment and KERNEL_IDLE_KEEP for long; more breaks it. A
 * kernel is idle when it is attached.
 */
void kernel_idle(struct kernel_pipes *k, bool idle);

#endif
