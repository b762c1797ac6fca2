/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uplink.h - A connection to a server, on a stream socket that another process began to connect.
 *
 * The front may not connect; sockets are sent to it. Output is queued up to UPLINK_MAX; a producer
 * stops when uplink_full() is true and goes on at drain. With TLS, the bytes at this interface are
 * plain, an end without close_notify is a break, and nothing may be written before connected. When
 * the peer takes no more (it has closed), further output is dropped, and input is still read: a
 * server may answer before it has read the whole request.
 *
 * The struct is the owner's and may be freed at the end of the round in which it was closed. Every
 * function may be called from every callback.
 */
#ifndef CAISSON_NET_UPLINK_H
#define CAISSON_NET_UPLINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "net/loop.h"

#define UPLINK_HIGH (64u << 10)
#define UPLINK_MAX (1u << 20)

struct tls;
struct uplink;

struct uplink_ops {
	void (*connected)(struct uplink *u);
	void (*data)(struct uplink *u, const char *data, size_t len);
	void (*drain)(struct uplink *u); /* it was full, and the queue is empty */
	void (*eof)(struct uplink *u);   /* the peer has ended its stream */
	/* Not connected, or reset; it is closed. @why: a negative errno; -EPROTO: TLS failed
	 * (uplink.problem). */
	void (*broken)(struct uplink *u, int why);
};

struct uplink {
	struct loop *loop;
	const struct uplink_ops *ops;
	void *arg;
	struct watch watch;
	struct buf out;
	bool connected, paused, eof;
	bool full;             /* drain will follow */
	bool deaf;             /* the peer takes no more */
	bool ending, ended;    /* uplink_finish(); shut down */
	struct tls *tls;       /* NULL: plain */
	bool shaking;          /* TLS: the handshake is incomplete */
	struct deferred pump;  /* TLS: hand up decrypted bytes */
	uint64_t moved_ns;     /* when a byte moved in either direction */
	uint64_t taken, given; /* bytes from and to the peer */
	const char *problem;   /* TLS: why it failed; static */
};

/* uplink_open() - @fd: non-blocking, owned from now on, also on failure. 0 or -errno. */
int uplink_open(struct uplink *u, struct loop *l, int fd, const struct uplink_ops *ops, void *arg);
/* uplink_tls() - Right after it: use TLS with @session, which is owned from now on. */
void uplink_tls(struct uplink *u, struct tls *session);
bool uplink_is_open(const struct uplink *u); /* false for zeroed memory too */

/* uplink_write() - 0, or -ENOBUFS when the queue would exceed UPLINK_MAX: close it then. */
int uplink_write(struct uplink *u, const void *data, size_t len);
bool uplink_full(struct uplink *u);              /* true: drain will follow */
void uplink_finish(struct uplink *u);            /* no more output: half-close after the queue */
void uplink_pause(struct uplink *u, bool pause); /* no data and eof meanwhile */
void uplink_close(struct uplink *u);             /* at once; idempotent; no callback follows */

#endif
