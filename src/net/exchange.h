/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exchange.h - The structs and functions that http_conn.c, http_time.c, exchange.c, http_request.c,
 * http_response.c and upgrade.c share. Not for handlers.
 *
 * http_conn.c owns the connection's state machine, http_time.c its deadlines, exchange.c the life
 * of a request and its answer, http_request.c turns bytes into a request, http_response.c turns
 * answers into bytes, upgrade.c hands the connection over to a WebSocket.
 */
#ifndef CAISSON_NET_EXCHANGE_H
#define CAISSON_NET_EXCHANGE_H

#include <llhttp.h>
#include <sys/queue.h>

#include "base/buf.h"
#include "net/conn.h"
#include "net/http.h"
#include "net/loop.h"
#include "net/prescan.h"

enum http_state {
	HTTP_STATE_IDLE,     /* between requests; input may wait for its turn, or for the output */
	HTTP_STATE_HEAD,     /* a head has begun */
	HTTP_STATE_BODY,     /* on_head agreed, the body is arriving */
	HTTP_STATE_HANDLING, /* the request is the handler's, or its answer is being written */
	HTTP_STATE_CLOSING,  /* after conn_finish() or conn_close(): input is dropped */
	HTTP_STATE_UPGRADED, /* the connection has another owner; only memory is left */
};

struct http_exchange {
	struct http_conn *h;
	struct http_request req;
	struct buf body;
	struct buf extra; /* response headers of the handler, each with its CRLF */
	void *user;
	void (*on_gone)(struct http_exchange *x);
	void (*on_drain)(struct http_exchange *x);
	/* http_take_body() */
	void (*on_body)(struct http_exchange *x, const char *data, size_t len);
	/* A reply too large for one piece: rest_len bytes, of which the first rest_at are out. */
	const char *rest;
	size_t rest_len, rest_at;
	char *rest_copy;    /* NULL: the owner of the body keeps it */
	struct timer alive; /* of a stream of events: the next comment */
	uint64_t started_ns, bytes_out;
	uint64_t body_ns;     /* when the wait for the body began, plus pauses of the handler */
	uint64_t body_seen;   /* bytes of it so far */
	uint64_t piece_ns;    /* when the last of them came, or the handler resumed */
	uint64_t pause_ns;    /* when the handler paused */
	uint64_t stream_left; /* of a response with a length */
	int64_t length;       /* Content-Length of the request */
	int status;           /* of the response, 0 until its head is written */
	bool is_head;         /* HEAD: no body in the response */
	bool has_body, body_done, chunked_in, expects;
	bool failed; /* a protocol error: the connection is closed after the answer */
	bool gone;   /* the client has vanished: nothing is written any more */
	bool streaming, chunked_out, sized_out, bodiless, keep;
	bool body_paused;
};

struct http_conn {
	struct conn *conn;
	const struct http_config *config;
	LIST_ENTRY(http_conn) link; /* all of this process; see http_drain() */
	enum http_state state;
	bool advancing; /* advance() is on the stack and goes on */
	bool paused, eof, draining;
	bool spoken;    /* the peer has sent something */
	struct buf in;  /* input not taken yet, from `off` on */
	size_t off;     /* taken */
	size_t scanned; /* bytes after off that the prescan has seen */
	struct buf out; /* scratch: one response head, one chunk */
	struct prescan scan;
	struct chunks chunks;
	llhttp_t parser;
	struct deferred again;       /* more input to look at, in the next turn */
	struct http_exchange *x;     /* the current one, NULL between requests */
	struct http_exchange *spent; /* over, but on_head has not returned */
	bool in_head;
	uint64_t begun_ns;    /* idle: since when; head: its first byte */
	uint64_t deadline_ns; /* as set in conn */
};

/* exchange_new() - An exchange with room for @n_headers and @text_len bytes after them. NULL: no
 * memory. */
struct http_exchange *exchange_new(struct http_conn *h, size_t n_headers, size_t text_len,
				   char **ret_text);
/* exchange_free() - Memory only, without callbacks. */
void exchange_free(struct http_exchange *x);
/* exchange_gone() - The client has vanished before the response was complete. */
void exchange_gone(struct http_exchange *x);
/* exchange_finish() - The response is handed over: call on_done, free it, go on or close. */
void exchange_finish(struct http_exchange *x);

/*
 * request_head() - The head that the prescan has accepted, at h->in.data + h->off, as an exchange.
 * Return: 0 with h->x set; a status with *ret_message set (h->x may be set); -ENOMEM.
 */
int request_head(struct http_conn *h, const char **ret_message);
/*
 * request_body() - Parse bytes of the body of h->x. @ret_used: how many belong to it.
 * Return: 0 (x->body_done says whether it is complete), a status with *ret_message set, or -ENOMEM.
 */
int request_body(struct http_conn *h, const char *data, size_t len, size_t *ret_used,
		 const char **ret_message);

/* response_more() - Go on with a large reply after the queue has drained. */
void response_more(struct http_exchange *x);
/* response_write() - conn_write() that counts. */
int response_write(struct http_exchange *x, const void *data, size_t len);

/* http_fail() - Answer a protocol error through on_error, then close. */
void http_fail(struct http_conn *h, int status, const char *message);
/* http_finish(), http_drop() - conn_finish(), conn_close(); input is dropped from now on. */
void http_finish(struct http_conn *h);
void http_drop(struct http_conn *h, int why);
/* http_settle() - Set deadline and pause for the state. @h may be freed when this returns. */
void http_settle(struct http_conn *h);
void http_deadline(struct http_conn *h, uint64_t at_ns); /* 0: none */
void http_on_deadline(struct conn *c);
void http_pause(struct http_conn *h, bool pause);
size_t http_input_len(const struct http_conn *h);
/* http_detach() - The connection has another owner: return the input not parsed yet, free the
 * rest. */
void http_detach(struct http_conn *h, struct buf *ret_in);
/* http_watch_write() - Output was queued: it has to make progress. */
void http_watch_write(struct http_conn *h);

#endif
