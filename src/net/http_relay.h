/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_relay.h - HTTP requests of a client, passed on to a server that nobody trusts, and its
 * answers passed back. After a 101 the two connections are one, of bytes without a meaning to the
 * relay.
 *
 * The relay moves requests, answers and bytes, with back pressure in both directions, and keeps the
 * deadlines. Its owner decides: it judges and rewrites the heads, replies to the client when
 * something fails, and knows when the relay is over. The port proxy of the front
 * (front/api/port_proxy.c) has one relay for each request; the gate (gate/inspect.c) has one for
 * each connection, and gives it one request after the other.
 *
 * The struct belongs to the owner and may be freed at the end of the round in which it was closed.
 */
#ifndef CAISSON_NET_HTTP_RELAY_H
#define CAISSON_NET_HTTP_RELAY_H

#include <llhttp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "net/loop.h"

struct conn;
struct http_exchange;
struct relay;

/* ---- the answer of a server: answer.c ------------------------------------------------------- */

#define ANSWER_HEAD_MAX (32u << 10)
#define ANSWER_HEADERS_MAX 100u

struct answer;

struct answer_ops {
	/* The head is complete: status, headers, length. Also of a 101, which has no body. */
	void (*head)(struct answer *a);
	void (*body)(struct answer *a, const char *data, size_t len); /* not empty */
};

struct answer {
	const struct answer_ops *ops;
	void *arg;
	int status;      /* valid from head on */
	bool has_length; /* the head announces the length of the body: */
	uint64_t length;
	const char *why; /* why it was refused; static */

	bool to_head, may_switch; /* see answer_init() */
	bool headed, over;
	llhttp_t parser;
	size_t seen;     /* bytes of heads */
	struct buf text; /* names and values, NUL after each */
	struct {
		uint32_t name, value; /* in text */
	} at[ANSWER_HEADERS_MAX];
	size_t n;
};

/*
 * answer_init() - @to_head: of a HEAD request, so there is no body. @may_switch: 101 was requested.
 * answer_free() in every case.
 */
void answer_init(struct answer *a, bool to_head, bool may_switch, const struct answer_ops *ops,
		 void *arg);
void answer_free(struct answer *a);

/*
 * answer_feed() - Parse more bytes. @ret_used: with 1, how many of them belong to the answer.
 * Return: 0 go on; 1 the answer is complete; -EPROTO it is invalid (why); -ENOMEM.
 */
int answer_feed(struct answer *a, const char *data, size_t len, size_t *ret_used);
/* answer_eof() - The server closed. 1: the answer is complete; -EPROTO: it is not. */
int answer_eof(struct answer *a);

/* From head on. Names are in lower case, in the order of the head, and may repeat. */
const char *answer_name(const struct answer *a, size_t i);
const char *answer_value(const struct answer *a, size_t i);
/* answer_header() - The first of that name, or NULL. */
const char *answer_header(const struct answer *a, const char *lower_name);

/* ---- the connection to a server: uplink.c --------------------------------------------------- */

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

/* ---- the relay ------------------------------------------------------------------------------ */

enum relay_failure {
	RELAY_UNREACHABLE,    /* no connection, or no TLS (relay.up.problem); @error */
	RELAY_LATE,           /* a deadline of relay_times passed */
	RELAY_FULL,           /* the server does not read, and the queue to it is full */
	RELAY_BROKEN,         /* the connection to the server broke */
	RELAY_CLOSED,         /* the server closed it before the end of an answer */
	RELAY_UNASKED,        /* the server sent bytes without a request */
	RELAY_BAD_ANSWER,     /* relay.answer.why has the reason */
	RELAY_WRONG_PROTOCOL, /* a 101 to a protocol that the client did not ask for */
	RELAY_CLIENT_GONE,    /* a 101, and the client has left */
};

/* Times without a byte in either direction; connect_ns: in all. 0: no deadline. */
struct relay_times {
	uint64_t connect_ns; /* until the server is connected and TLS is ready */
	uint64_t answer_ns;  /* until the head of the answer */
	uint64_t idle_ns;    /* after it, and in a tunnel */
};

/* The decisions of the owner. Hooks that are marked so may be NULL. Each may close the relay. */
struct relay_ops {
	struct relay_times times;
	/* May be NULL. The server is there; relay_tunnel() may be called. */
	void (*connected)(struct relay *r);
	/* May be NULL. Bytes moved: count them (relay.up). False: the relay is closed. */
	bool (*moved)(struct relay *r);
	/* The head of the answer, also of a 101: add headers to relay.x. */
	void (*answer_head)(struct relay *r);
	/* The whole answer was passed on. The owner takes the exchange and ends its stream. */
	void (*answered)(struct relay *r);
	/* The client has read: for http_stream_on_drain(). Calls uplink_pause(&relay->up,
	 * false). */
	void (*client_drain)(struct http_exchange *x);
	/* May be NULL. The exchange is no longer the relay's: no callback may lead to it. */
	void (*released)(struct http_exchange *x);
	/* Called once for a failure; the owner closes the relay. */
	void (*failed)(struct relay *r, enum relay_failure failure, int error);
	/* In a tunnel: the server has ended its stream (0), or the connection to it broke
	 * (-errno). */
	void (*server_ended)(struct relay *r, int why);
	/* In a tunnel: the client's connection is over. relay.conn is NULL. */
	void (*client_closed)(struct relay *r);
};

struct relay {
	const struct relay_ops *ops;
	struct loop *loop;
	struct http_exchange *x; /* the request under way; NULL: none */
	struct conn *conn;       /* the client's, in a tunnel; else NULL */
	struct uplink up;        /* the server's */
	struct answer answer;
	struct buf head;   /* of the request, for the server, until it is sent; may hold secrets */
	bool ready;        /* the server takes requests */
	bool chunked;      /* the body of the request */
	bool whole;        /* all of the request has come */
	bool answering;    /* the head of the answer is out */
	uint64_t left;     /* bytes of the answer that may still come */
	uint64_t moved_ns; /* when the client moved, or the connection was begun */
	struct timer timer;
};

/* relay_init() - @head_max: bytes of a request's head for the server. */
void relay_init(struct relay *r, struct loop *l, size_t head_max, const struct relay_ops *ops);

/* relay_start_timer() - The connection begins now: connect_ns runs. */
void relay_start_timer(struct relay *r);

/* relay_open() - @fd: a socket that connects or is connected; owned from now on, also on failure.
 * uplink_tls() may follow. 0 or -errno. */
int relay_open(struct relay *r, int fd);

/*
 * relay_request() - Pass on @x, whose head for the server is in relay.head and whose body the
 * caller hands to relay_body(). Sends the head at once or when the server is connected.
 * @switches: a 101 is an answer to it
 */
void relay_request(struct relay *r, struct http_exchange *x, bool switches);
void relay_body(struct relay *r, const char *data, size_t len);
void relay_body_end(struct relay *r);

/* relay_release() - Return the exchange, which is the caller's from now on. NULL: it is gone. */
struct http_exchange *relay_release(struct relay *r);

/* relay_release_conn() - In the same way the client's connection of a tunnel, which now ends
 * without further callbacks. */
struct conn *relay_release_conn(struct relay *r);

/* relay_forget() - The request is over, or its client has left. The connection stays. */
void relay_forget(struct relay *r);

/* relay_tunnel() - Answer the request with 101 to @protocol, and join the two connections. @early:
 * bytes of the server for the client. */
void relay_tunnel(struct relay *r, const char *protocol, const char *early, size_t len);

/* relay_close() - Close the connection to the server and free memory; not the exchange, nor the
 * client's connection. Idempotent; no hook is called any more, except client_closed. */
void relay_close(struct relay *r);

#endif
