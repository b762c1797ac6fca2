/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn.h - One accepted stream connection: bytes in, bytes out, plain or TLS, with an end.
 *
 * Output is queued and never blocks; the queue has a high-water mark at which producers should stop
 * (conn_congested()) and a hard maximum at which the connection is ended, so a client that does not
 * read costs a bounded amount of memory. Input is handed up as it comes; an owner that is not ready
 * for more pauses the connection, and TCP slows the peer down.
 *
 * Life: made by a listener; the owner sets ops in the listener's on_accept, which for TLS comes
 * after the handshake. It ends by conn_close() (at once), conn_finish() (after the queue is
 * written; bounded by a linger deadline), or by the peer. In every case on_close is called exactly
 * once, from the loop and never from inside a conn_* call of the owner, and the struct is freed
 * after it. No other callback comes from inside a conn_* call either. Between its end and on_close
 * a connection may still be called, and does nothing.
 */
#ifndef CAISSON_NET_CONN_H
#define CAISSON_NET_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct iovec;
struct loop;
struct conn;
struct sockdiag;   /* sockdiag.h */
struct tls_server; /* tls.h */

struct peer {
	char text[64]; /* "127.0.0.1:5123", "[::1]:99", "unix" */
	char host[48]; /* the address alone: "127.0.0.1", "unix" */
	char net[48];  /* for counting: host, and of IPv6 the first 64 bits, as "2001:db8::" */
	bool is_unix;
	bool is_loopback; /* 127/8 or ::1 */
	uid_t uid;        /* unix: SO_PEERCRED; else -1 until conn_uid() has found it */
	pid_t pid;        /* unix: SO_PEERCRED; else -1 */
};

/*
 * Each may be NULL (on_eof: then the end is answered with conn_finish()). Each may close or finish
 * its own and any other connection.
 */
struct conn_ops {
	/* @len bytes arrived. The owner copies those that it keeps. */
	void (*on_data)(struct conn *c, const char *data, size_t len);
	/* The queue fell below the low-water mark after it was above the high one, or after
	 * conn_ask_drain(). */
	void (*on_drain)(struct conn *c);
	/*
	 * The peer sent its end of stream (half-close); writing is still possible. Comes once,
	 * after the last on_data: while paused, at once when nothing is unread before it, else
	 * after the pause. With TLS it is the peer's close_notify; an end without one is
	 * -ECONNRESET.
	 */
	void (*on_eof)(struct conn *c);
	/* The deadline of conn_deadline() passed. It fires once. */
	void (*on_deadline)(struct conn *c);
	/*
	 * Over. The last call. @why: 0 orderly, or a negative errno: what conn_close() was given,
	 * -EPIPE and -ECONNRESET the peer is gone, -ENOBUFS see conn_write(), -ETIMEDOUT see
	 * conn_finish(), -EPROTO broken TLS, -ESHUTDOWN listener_free(), or the error of a system
	 * call.
	 */
	void (*on_close)(struct conn *c, int why);
};

struct listener_config {
	/*
	 * Over it the oldest stranger of all addresses is closed and counted, and the new one comes
	 * in. Without a stranger the new one is accepted, closed at once, and counted.
	 */
	size_t max_conns;
	/*
	 * Per peer.net, of those that conn_admit() was not called for; 0 = any number; unix is
	 * exempt. Over it the oldest of them is closed and counted: a client that proves who it is
	 * gets in, whatever else comes from the same address.
	 */
	size_t max_strangers;
	size_t queue_high, queue_low, queue_max;
	uint64_t linger_ns; /* conn_finish(): the longest time without progress */
	/* With TLS: the bytes for a client that speaks plain HTTP, before it is closed; NULL: it
	 * gets an alert, as for everything else that is not TLS. */
	const char *plain_answer;
	/* Set ops and user (conn_set_ops). False: it is closed, without on_close. */
	bool (*on_accept)(struct conn *c, void *arg);
	void *arg;
};

struct listener;

/*
 * listener_tcp() - Bind and listen. @addr: numeric "127.0.0.1:8001", "[::]:8001" (IPv4 too),
 * ":8001" is an error that asks for an address. SO_REUSEADDR; TCP_NODELAY on accepted sockets.
 * Return: descriptor or -errno with a message that names the address and the remedy.
 */
int listener_tcp(const char *addr, struct err *e);

/*
 * listener_limit_unsent() - Bound the bytes that each accepted socket of @fd holds beyond those
 * that the peer's window has room for; listener_tcp() does it. Without the bound the Linux kernel
 * holds 4 MiB and more for a client that does not read: a stream counts them as read, and the
 * client that reconnects finds that they are forgotten.
 */
void listener_limit_unsent(int fd);

/*
 * listener_unix() - A stale socket file without a listener is replaced; a live one is -EADDRINUSE,
 * any other file in its place -EEXIST. @mode: e.g. 0660, whatever the umask is; for the start of a
 * program, since it changes the umask of the whole process for a moment.
 */
int listener_unix(const char *path, unsigned int mode, struct err *e);

/*
 * addr_is_loopback() - Whether @addr ("host:port") binds only loopback; -EINVAL: not a numeric
 * address.
 */
int addr_is_loopback(const char *addr, struct err *e);

/*
 * listener_start() - Serve a listening descriptor (owned from now on, also after a failure).
 * @tls: NULL: plain; outlives the listener. @config is copied.
 */
int listener_start(struct loop *l, int fd, struct tls_server *tls,
		   const struct listener_config *config, struct listener **ret, struct err *e);
/* listener_stop() - Accept no more; connections live on. Idempotent, from anywhere. */
void listener_stop(struct listener *ls);
size_t listener_count(const struct listener *ls);     /* connections now, handshakes too */
uint64_t listener_refused(const struct listener *ls); /* by the caps, so far */
/*
 * listener_free() - Ends the connections that are left, with on_close. Not from inside a callback
 * of a connection.
 */
void listener_free(struct listener *ls);

/*
 * conn_open() - A connection that the caller accepted: @fd is non-blocking and owned from now on.
 * @ops and @user get its end also when it comes before config->on_accept, which may set others.
 * @config is borrowed; its maxima of connections do not count. Return: NULL without memory; the
 * socket is closed then.
 */
struct conn *conn_open(struct loop *l, int fd, struct tls_server *tls,
		       const struct listener_config *config, const struct conn_ops *ops,
		       void *user);

void conn_set_ops(struct conn *c, const struct conn_ops *ops, void *user); /* ops are borrowed */
void *conn_user(const struct conn *c);
const struct peer *conn_peer(const struct conn *c);
struct loop *conn_loop(const struct conn *c);
/* conn_admit() - The peer has proved who it is and is no stranger any more. Idempotent. */
void conn_admit(struct conn *c);
/* conn_uid() - The user at the other end of a TCP connection within this machine (sockdiag.h); the
 * first answer is kept. */
int conn_uid(struct conn *c, struct sockdiag *d, uid_t *ret);
bool conn_is_tls(const struct conn *c);

/*
 * conn_write() - Queue, after trying to send at once. Over the hard maximum: the connection ends,
 * -ENOBUFS. After conn_finish(): -EPIPE. After its end: the reason, or -EPIPE.
 */
int conn_write(struct conn *c, const void *data, size_t len);
/* conn_writev() - The same of several pieces, as one. */
int conn_writev(struct conn *c, const struct iovec *iov, size_t n_iov);
size_t conn_queued(const struct conn *c);
/* conn_moved() - Bytes that moved since the last call: to our kernel, and from there to the peer's,
 * each counted. */
uint64_t conn_moved(struct conn *c);
/* conn_given() - Bytes that were written to it so far. conn_arrived() - Whether the peer's kernel
 * has as many. */
uint64_t conn_given(const struct conn *c);
bool conn_arrived(const struct conn *c, uint64_t given);
bool conn_congested(const struct conn *c); /* was above high water; on_drain will follow */
/* conn_ask_drain() - With bytes in the queue: on_drain comes when some of them have left and no
 * more than queue_low are left. */
void conn_ask_drain(struct conn *c);

/*
 * conn_pause() - Stop, resume reading. Even paused, a reset, hang-up or end of stream is noticed.
 */
void conn_pause(struct conn *c, bool pause);
void conn_deadline(struct conn *c, uint64_t at_ns); /* 0 = none; forgotten by conn_finish() */

/*
 * conn_finish() - The owner writes no more, and input is discarded: write the rest of the queue
 * (without progress for linger_ns: -ETIMEDOUT), end our stream, and give the peer two seconds to
 * end its own, so that no reset overtakes the last bytes. Then on_close.
 */
void conn_finish(struct conn *c);
void conn_close(struct conn *c, int why); /* at once; the queue is lost */

#endif
