/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uplink.h - A stream socket that somebody else began to connect: bytes both ways, bounded.
 *
 * The front may connect nowhere; sockets are given to it. Output is queued up to UPLINK_MAX; a
 * producer stops when uplink_full() says so and goes on at drain. It may speak TLS: then what is
 * handed up and taken is plain, an end that the peer did not announce is a break, and nothing may
 * be written before connected. A peer that takes no more (its end is closed) makes further output
 * vanish, and is still listened to: who answers before he has heard all is answering.
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
	void (*drain)(struct uplink *u); /* it was full, and all of it is out */
	void (*eof)(struct uplink *u);   /* the peer will say no more */
	/* Not connected, or reset: it is closed. @why: a negative errno; -EPROTO: TLS failed, see
	 * uplink.problem. */
	void (*broken)(struct uplink *u, int why);
};

struct uplink {
	struct loop *loop;
	const struct uplink_ops *ops;
	void *arg;
	struct watch watch;
	struct buf out;
	bool connected, paused, eof;
	bool full;             /* somebody waits for drain */
	bool deaf;             /* the peer takes no more */
	bool ending, ended;    /* uplink_finish(); said */
	struct tls *tls;       /* NULL: plain */
	bool shaking;          /* TLS: the handshake is not over */
	struct deferred pump;  /* TLS: something was decrypted and not yet handed up */
	uint64_t moved_ns;     /* when a byte went either way */
	uint64_t taken, given; /* bytes from and to the peer */
	const char *problem;   /* TLS: why it failed; static */
};

/* uplink_open() - @fd: non-blocking, owned from now on, also on failure. 0 or -errno. */
int uplink_open(struct uplink *u, struct loop *l, int fd, const struct uplink_ops *ops, void *arg);
/* uplink_tls() - Right after it: speak TLS as @session, which is owned from now on. */
void uplink_tls(struct uplink *u, struct tls *session);
bool uplink_is_open(const struct uplink *u); /* false for zeroed memory too */

/* uplink_write() - 0, or -ENOBUFS when that is more than may wait: close it then. */
int uplink_write(struct uplink *u, const void *data, size_t len);
bool uplink_full(struct uplink *u);              /* true: drain will follow */
void uplink_finish(struct uplink *u);            /* that was all; half-closes after the queue */
void uplink_pause(struct uplink *u, bool pause); /* data and eof wait */
void uplink_close(struct uplink *u); /* at once; idempotent; nothing is called any more */

#endif
