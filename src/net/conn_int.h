/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn_int.h - The inside of a connection, for conn.c (its life), conn_io.c (its bytes) and
 * listener.c (where it comes from) alone.
 */
#ifndef CAISSON_NET_CONN_INT_H
#define CAISSON_NET_CONN_INT_H

#include <sys/queue.h>

#include "base/buf.h"
#include "net/conn.h"
#include "net/loop.h"

struct tls;

/* Only forward; every state may go to CLOSED. */
enum conn_state {
	CONN_HANDSHAKE, /* TLS only: the owner does not have it yet */
	CONN_OPEN,
	CONN_FLUSH,  /* conn_finish(): the queue is being written, input is discarded */
	CONN_DRAIN,  /* our stream has ended; input is discarded until the peer ends its own */
	CONN_CLOSED, /* the descriptor is closed; on_close will come */
};

struct conn {
	struct loop *loop;
	const struct listener_config *config;
	const struct conn_ops *ops; /* NULL until set, and for an end without on_close */
	void *user;
	struct peer peer;

	struct watch watch;
	struct timer deadline; /* the owner's */
	struct timer guard;    /* ours, for handshake, flush and drain */
	struct deferred end;   /* on_close */
	struct deferred pump;  /* decrypted bytes are left after a pause */
	struct tls *tls;       /* NULL: plain */

	enum conn_state state;
	int why;        /* CLOSED: for on_close */
	bool paused;    /* by the owner */
	bool eof;       /* the peer's end was handed up */
	bool fin;       /* the socket has no more input */
	bool end_ahead; /* paused: the peer's end has come, after bytes that are not read yet */
	bool congested; /* was above the high-water mark, not yet below the low one */

	struct buf out; /* sent up to out_head */
	size_t out_head;
	uint64_t sent;      /* bytes that the kernel took */
	uint64_t moved;     /* at the last conn_moved(): those and the acknowledged ones */
	uint64_t discarded; /* bytes of input since conn_finish() */

	struct listener *listener;
	LIST_ENTRY(conn) link;       /* in the listener's list */
	struct strangers *strangers; /* those of its address, when it is one; or NULL */
	TAILQ_ENTRY(conn) in_net;    /* among them, the oldest first */
	TAILQ_ENTRY(conn) in_all;    /* among the strangers of all addresses */
	bool evicted;                /* it ends to make room, and no longer counts */
};

/*
 * conn_new() - A connection on an accepted non-blocking socket, which it owns. @c->listener and the
 * list are the caller's to fill. Nothing happens before conn_start().
 * Return: NULL when memory is short; the socket is closed then.
 */
struct conn *conn_new(struct loop *l, int fd, struct tls_server *tls,
		      const struct listener_config *config, const struct peer *peer);
void conn_start(struct conn *c);
/* conn_ready() - Hand it to the owner: at once when plain, after the handshake with TLS. */
void conn_ready(struct conn *c);
/* conn_end() - As conn_close(), in any state. */
void conn_end(struct conn *c, int why);
/* conn_gone() - Call on_close, leave the listener, free. From the loop, or from listener_free(). */
void conn_gone(struct conn *c);
/* conn_refuse_plain() - During the handshake: answer config->plain_answer, without TLS, and finish.
 */
void conn_refuse_plain(struct conn *c);

/* conn_flushed() - FLUSH, and the queue is empty: on to DRAIN. */
void conn_flushed(struct conn *c);

/* conn_io.c */

/* conn_event() - The callback of the watch. */
void conn_event(struct watch *w, uint32_t events);
/* conn_pump() - Hand up what TLS still holds. */
void conn_pump(struct deferred *d);
/* conn_send_tls() - Send or queue the output of TLS. 0, or -errno: the connection ended. */
int conn_send_tls(struct conn *c);
/* conn_rearm() - Ask the loop for exactly the events that this state waits for. */
void conn_rearm(struct conn *c);

/* listener.c */

/* listener_forget() - @c is about to be freed. */
void listener_forget(struct conn *c);
/* listener_admit() - @c is no stranger any more. Idempotent. */
void listener_admit(struct conn *c);

#endif
