/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http.h - HTTP/1.1 server over conn.h: requests up, responses down, in order.
 *
 * Parsing is llhttp's in strict mode, behind scans of the raw bytes (prescan.h, chunks.c) that
 * refuse forms that parsers disagree about. Requests of one connection are handed up one at a time:
 * the next pipelined one is parsed only when the response before it is complete and the Linux
 * kernel has taken all of it, so answers are in order by construction, and a client that pipelines
 * costs no memory beyond its input buffer (reading is paused). One connection gets one request per
 * round of the loop: a client that pipelines delays neither other connections nor timers.
 *
 * An exchange is one request and its response. The handler gets it when the head is parsed
 * (on_head: may refuse before a body is read; `Expect: 100-continue` is answered only after on_head
 * agreed) and when the body is complete (on_request). It answers at once or later with
 * http_reply(), or as a stream. It must not touch the exchange after on_gone, or after it finished
 * the response.
 *
 * A client that ends its stream while its request is being handled is gone: leaving and
 * half-closing cannot be told apart. An immediate answer still reaches a client that half-closed.
 *
 * Errors of the protocol itself (400, 408, 413, 414, 417, 426, 431, 501 for unknown methods and
 * transfer codings, 505) are answered through config->on_error so that they have the one error
 * shape, and the connection is closed after them.
 *
 * Everything here is for the loop's thread alone.
 */
#ifndef CAISSON_NET_HTTP_H
#define CAISSON_NET_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct iovec;
struct buf;
struct conn;
struct http_exchange;
struct ws;
struct ws_ops;

#define HTTP_HEADERS_MAX 100

struct http_config {
	size_t head_max;        /* request line and headers together: 431 */
	size_t target_max;      /* 414 */
	size_t body_max;        /* 413; also enforced on chunked bodies while they arrive */
	uint64_t head_ns;       /* from the first byte of a request to the end of its head: 408 */
	uint64_t body_ns;       /* for the whole body: 408 */
	uint64_t body_min_rate; /* bytes per second that a body needs after 5 s; 0 = any */
	uint64_t first_ns;      /* to the first byte of the first request; 0 = idle_ns */
	uint64_t idle_ns;       /* between requests: closed without an answer */
	uint64_t write_ns;      /* output waits without (much) progress for so long: closed */

	/*
	 * Head parsed. Return 0 to go on, or a status after having answered with http_reply() (the
	 * connection is then closed if a body is outstanding). The exchange stays valid until it
	 * returns: `return http_status(x)`. Once it has answered, or begun a stream, on_request is
	 * not called. A status without an answer is answered through on_error.
	 */
	int (*on_head)(struct http_exchange *x);
	void (*on_request)(struct http_exchange *x);
	/*
	 * Write a response for a protocol error: called instead of on_request. @message, a static
	 * text, names the problem. Must call http_reply(), before it returns. For an error in the
	 * head there was no on_head, and unknown fields of the request are "".
	 */
	void (*on_error)(struct http_exchange *x, int status, const char *message);
	/*
	 * The last call of every exchange: its response was handed to the connection, or the client
	 * is gone (then after on_gone). For the log line; http_status() is 0 when no response was
	 * begun.
	 */
	void (*on_done)(struct http_exchange *x);
	/* The connection is over, also between requests; not called after an upgrade. May be
	 * NULL. */
	void (*on_end)(void *arg);
	/* For relays: path is as sent, and not checked. */
	bool raw_path;
	/* How many bytes of a path, as sent, are the server's own (target_decode_path()). NULL: all
	 * of them. */
	size_t (*own_path)(const char *path, size_t len);
	void *arg;
};

struct http_header {
	const char *name;  /* lower case */
	const char *value; /* NUL-terminated, without surrounding space; no control bytes but tab */
	size_t value_len;
};

/* Read-only for the handler; valid until the end of the exchange. */
struct http_request {
	const char *method; /* "GET", ... upper case as sent */
	/* As sent, origin form ("/a?b"); absolute form is reduced to origin form and its host must
	 * equal Host; OPTIONS * is "*" */
	const char *target;
	/* Decoded once; valid UTF-8; begins with '/' or is "*". With an encoded slash, a backslash,
	 * NUL, or a "." or ".." segment it is 400. Empty segments are kept. */
	const char *path;
	const char *query; /* after '?', undecoded, "" when absent */
	/* Names are unique: the values of one that was repeated are joined by ", ". */
	const struct http_header *headers;
	size_t n_headers;
	const char *host; /* Host header, validated syntax; "" when HTTP/1.0 sent none */
	const char *body; /* NUL-terminated after body_len bytes; complete in on_request */
	size_t body_len;
	bool keep_alive;
	bool http10;
};

/* http_serve() - Take over a connection: sets its ops. @config is borrowed and must outlive it. */
void http_serve(struct conn *c, const struct http_config *config);

const struct http_request *http_request(const struct http_exchange *x);
/* http_header() - NULL when absent. */
const char *http_header(const struct http_exchange *x, const char *lower_name);
/*
 * http_query() - Decoded value of a query parameter into @out, which is emptied first.
 * Return: false when it is absent or repeated, or when any part of the query is malformed.
 */
bool http_query(const struct http_exchange *x, const char *name, struct buf *out);

/*
 * http_take_body() - In on_head: the body, of any length, is handed up as it comes instead of being
 * kept; on_request follows, with an empty body. Every piece has to come within config->body_ns, and
 * at the minimum rate; pauses of the handler do not count. For a body that breaks off, on_gone is
 * called before it is answered through on_error. @on_body is not called after the answer.
 */
void http_take_body(struct http_exchange *x,
		    void (*on_body)(struct http_exchange *x, const char *data, size_t len));
/* http_pause_body() - Pause or resume. A piece that was read already may still come. */
void http_pause_body(struct http_exchange *x, bool pause);

struct conn *http_conn(const struct http_exchange *x);
const struct http_config *http_config_of(const struct http_exchange *x);

/*
 * One pointer for the handler, and a callback for a client that leaves before the response is
 * complete. on_gone is called at most once, and never after http_reply() or the end of a stream;
 * on_done follows it, and then the exchange is freed.
 */
void http_set_user(struct http_exchange *x, void *user, void (*on_gone)(struct http_exchange *x));
void *http_user(const struct http_exchange *x);

/* Extra response headers, before http_reply() or http_stream(). Asserts that values have no control
 * bytes, and that names are not this layer's own (Content-Length, Transfer-Encoding,
 * Connection). */
void http_add_header(struct http_exchange *x, const char *name, const char *value);

/*
 * http_reply() - The whole response; @body is copied when it has to wait. HEAD gets the headers
 * with the same Content-Length and no body. 204/304 no body. @content_type may be NULL. If the
 * request's body is incomplete, its connection is closed after the answer.
 */
void http_reply(struct http_exchange *x, int status, const char *content_type, const void *body,
		size_t len);

/* http_reply_kept() - The same with a @body that outlives all connections, and is not copied. */
void http_reply_kept(struct http_exchange *x, int status, const char *content_type,
		     const void *body, size_t len);

/* http_stream() - A response of unknown length: chunked (or until close for HTTP/1.0). */
void http_stream(struct http_exchange *x, int status, const char *content_type);
/* http_stream_sized() - A response of exactly @len bytes in pieces. An earlier end aborts it. */
void http_stream_sized(struct http_exchange *x, int status, const char *content_type, uint64_t len);
/* http_stream_write() - 0, or a negative errno when the connection has ended: on_gone will come. */
int http_stream_write(struct http_exchange *x, const void *data, size_t len);
/* http_stream_writev() - The same with at most HTTP_PIECES pieces, as one. */
#define HTTP_PIECES 4
int http_stream_writev(struct http_exchange *x, const struct iovec *iov, size_t n_iov);
/* http_stream_lost() - Out of memory for a write: cut the stream, as when a write fails. Return:
 * @why. */
int http_stream_lost(struct http_exchange *x, int why);
/* http_stream_congested() - Stop producing; on_drain will come. */
bool http_stream_congested(const struct http_exchange *x);
void http_stream_on_drain(struct http_exchange *x, void (*fn)(struct http_exchange *x));
/* http_stream_end() - Final chunk; the exchange is over. */
void http_stream_end(struct http_exchange *x);
/* http_stream_abort() - No final chunk, connection closed: the client sees that it is
 * incomplete. */
void http_stream_abort(struct http_exchange *x);
/*
 * sse_begin() - http_stream() of Server-Sent Events. It sends a comment every 15 seconds, because
 * proxies end a connection that is silent.
 */
void sse_begin(struct http_exchange *x);
/*
 * sse_event() - One Server-Sent Event on a stream whose content type is text/event-stream. @data
 * may have newlines. id, event may be NULL, and have no newline: -EINVAL. Else as
 * http_stream_write().
 */
int sse_event(struct http_exchange *x, const char *id, const char *event, const char *data,
	      size_t len);
/* sse_comment() - Text that readers of events ignore. */
int sse_comment(struct http_exchange *x, const char *text);

/* For the log line in on_done. bytes_out: all that was handed to the connection, head included. */
int http_status(const struct http_exchange *x);
uint64_t http_bytes_out(const struct http_exchange *x);
uint64_t http_started_ns(const struct http_exchange *x);

/* Whether this request is a WebSocket upgrade (GET, headers complete and valid, version 13). */
bool http_is_ws(const struct http_exchange *x);
/*
 * http_upgrade_ws() - 101 and hand the connection to a WebSocket; the exchange is over (on_done
 * called). Headers that were added go out with the 101. Messages come only after the caller has
 * returned.
 * Return: NULL when a 400/426 was answered through on_error.
 */
struct ws *http_upgrade_ws(struct http_exchange *x, const struct ws_ops *ops, void *user,
			   size_t message_max);

/*
 * http_upgrade() - 101 to @protocol, with the headers that were added; the exchange is over
 * (on_done called). For relays: the handshake is not checked.
 * @ret_early: replaced by input after the request; the caller frees it
 * Return: the connection, which has no deadline and is read; its ops must be set at once. NULL: the
 * client is gone, or the request is answered.
 */
struct conn *http_upgrade(struct http_exchange *x, const char *protocol, struct buf *ret_early);

/*
 * http_drain() - Finish: idle connections of this server are closed, others get "Connection: close"
 * with their next response, and are closed after it. Stop the listener before: new connections are
 * not drained.
 */
void http_drain(const struct http_config *config);
/* http_live() - The number of connections with this config, without upgraded ones. */
size_t http_live(const struct http_config *config);

#endif
