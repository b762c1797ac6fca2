/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_pipes.h - The front's ends of a kernel's pipes: two with JSON lines, two with output.
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
#include "front/cell/kernel_share.h"
#include "net/loop.h"

#define KERNEL_LINE_MAX (16u << 20)
#define KERNEL_DEPTH_MAX 64u
#define KERNEL_VALUES_MAX 100000u
#define KERNEL_IDLE_MAX (1u << 20) /* of an idle kernel: a picture of a background task */
#define KERNEL_IDLE_KEEP (64u << 10)

struct err;
struct kernel_pipes;

enum kernel_stream { STREAM_STDOUT, STREAM_STDERR };

struct kernel_pipes_ops {
	/* A message, borrowed: an object with a string "type". The output before it was passed
	 * on. */
	void (*message)(struct kernel_pipes *k, const char *type, json_t *m);
	void (*output)(struct kernel_pipes *k, enum kernel_stream s, const char *data, size_t len);
	/* The kernel broke the protocol (@why, static text), or closed its channel (@closed): then
	 * it may just be dead. Called once. */
	void (*broken)(struct kernel_pipes *k, const char *why, bool closed);
	/* The kernel has read all messages that waited for it. May be NULL. */
	void (*drained)(struct kernel_pipes *k);
};

struct kernel_pipes {
	struct loop *loop;
	const struct kernel_pipes_ops *ops;
	void *owner;
	struct watch in, out, streams[2]; /* the front's ends: in is written, the others are read */
	struct buf line, pending;
	size_t scanned;  /* bytes of line that have no newline */
	size_t taken;    /* bytes of line whose messages were handled in this round */
	size_t ahead[2]; /* bytes of output that may still be read before the current line */
	bool idle, paused, held, draining, over;
	bool deaf;         /* the other end of in is closed */
	bool half;         /* a part of pending has been written */
	bool joined;       /* adopted: the former front may have read half of the first line */
	uint32_t *writing; /* set to 1 while a message may be half written; or NULL */
	struct deferred resume;
	struct kernel_share own, *share; /* share: own, or that of its cell; may be set */
	uint64_t turn_ns;                /* processor time when the present turn began, or 0 */
	bool resting;                    /* reads nothing until rest fires */
	bool owing;                      /* rests because its cell owes time */
	struct timer rest;
	uint64_t stalled_ns; /* for how long it blocked the daemon: base/foreign.h */
	/* Runs while it is idle and has too much queued, or is deaf and has not ended. */
	struct timer slow;
};

/* The front's ends, in the order in which a kernel's start hands them over. */
enum { KERNEL_FD_IN, KERNEL_FD_OUT, KERNEL_FD_STDOUT, KERNEL_FD_STDERR, KERNEL_FDS };

/*
 * kernel_pipes_attach() - Read and write the pipes of a kernel. Takes @fds, also on failure: then
 * they are closed.
 */
int kernel_pipes_attach(struct kernel_pipes *k, struct loop *loop,
			const struct kernel_pipes_ops *ops, void *owner, const int fds[KERNEL_FDS],
			struct err *e);
void kernel_pipes_detach(struct kernel_pipes *k); /* close everything; idempotent */

/*
 * kernel_pipes_wake() - One more turn for a kernel that rests, because its execution is to end:
 * unless its cell owes twice the burst. The turn is charged as every other. False: it does not
 * rest, or owes too much.
 */
bool kernel_pipes_wake(struct kernel_pipes *k);

/*
 * kernel_pipes_tell() - Keep *@writing at 1 while a message may be half written, and at 0
 * otherwise. @writing: borrowed; may be NULL.
 */
void kernel_pipes_tell(struct kernel_pipes *k, uint32_t *writing);

/*
 * kernel_pipes_send() - Send one message, a whole JSON object without its newline. It is queued
 * when the pipe is full. The kernel is broken if the queue has no room for the message, or if @json
 * has an error because the message was too large.
 */
void kernel_pipes_send(struct kernel_pipes *k, const struct buf *json);

/*
 * kernel_pipes_drain() - The kernel is over: pass on the bytes that are in its pipes (bounded),
 * paused or not.
 */
void kernel_pipes_drain(struct kernel_pipes *k);

/*
 * kernel_pipes_pause() - Read neither output nor messages, because their receiver is not ready for
 * more; or read them again. After a pause they come in the same order, at the end of the round at
 * the earliest.
 */
void kernel_pipes_pause(struct kernel_pipes *k, bool pause);

/*
 * kernel_idle() - Set whether no execution runs. An idle kernel may have KERNEL_IDLE_MAX bytes of
 * half a line and of messages that it does not read for a moment, and KERNEL_IDLE_KEEP for long;
 * more breaks it. A kernel is idle when it is attached.
 */
void kernel_idle(struct kernel_pipes *k, bool idle);

#endif
