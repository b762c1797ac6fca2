/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_call.h - One HTTP request to a server, by libcurl, with the same defaults everywhere.
 *
 * A request checks certificates, speaks http and https alone, uses no signals, honours the proxies
 * of the environment, and follows no redirect: headers may hold credentials for one server.
 * Several requests run at once on a multi handle (http_call_start()). The caller drives it:
 * http_call_step() in a program that waits, bridge/fetch.c on an event loop. http_call_perform()
 * runs one request alone.
 *
 * Life: all zero, functions filled in -> http_call_begin() -> http_call_header(), http_call_body()
 * -> http_call_start() -> on_end -> http_call_begin() again, or http_call_free(). A failure between
 * begin and start is kept, and start returns it. A request stays at its address while it lives.
 */
#ifndef CAISSON_HTTP_CLIENT_HTTP_CALL_H
#define CAISSON_HTTP_CLIENT_HTTP_CALL_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

/* All requests to one server have these. Zero is the default of each. */
struct http_call_options {
	const char *ca_file;  /* PEM file of authorities; NULL: those that the machine trusts */
	const struct buf *ca; /* the same in memory, borrowed while the request lives */
	const char *socket;   /* connect to this unix socket, whatever the URL names */
	bool insecure;        /* take any certificate */
	bool direct;          /* use no proxy */
	bool http1;           /* HTTP/1.1, never a later version */
	bool path_as_is;      /* send "/../" as it is: the path is signed */
	bool keepalive;       /* let TCP test idle connections */
	long connect_s;       /* 0: 15 seconds */
	long silent_s;        /* drop a connection on which nothing moves for so long; 0: never */
	long buffer;          /* bytes to receive at once; 0: libcurl's choice */
};

#define HTTP_PAUSE 1

struct http_call {
	/* Each function may be NULL. Only on_end may free the request or begin it again. */

	/* One header, without white space around its value. @name is NULL at the status line of
	 * each answer, interim ones and those of a proxy included, and "" at the end of its head.
	 */
	void (*on_header)(void *arg, const char *name, const char *value);
	/* 0, HTTP_PAUSE (curl_easy_pause() brings the same bytes again), negative: give up. */
	int (*on_body)(void *arg, const char *data, size_t len);
	/* Of http_call_upload(): bytes, 0 at the end, negative to give up. */
	int64_t (*source)(void *arg, char *data, size_t size);
	/* It is over and no longer on the multi handle. */
	void (*on_end)(void *arg, CURLcode code);
	void *arg;

	/* Inside. */
	CURL *easy;
	CURLM *multi; /* while it runs */
	struct curl_slist *headers;
	bool failed;
	char error[CURL_ERROR_SIZE];
};

/* http_call_begin() - A new request on the same handle, which keeps connections. */
void http_call_begin(struct http_call *q, const struct http_call_options *o, const char *method,
		     const char *url);
/* http_call_header() - "Name: value". An empty value is sent as such. The end wipes it. */
void http_call_header(struct http_call *q, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* http_call_body() - The body. Borrowed until the end. */
void http_call_body(struct http_call *q, const void *data, size_t len);
/* http_call_upload() - The body comes from q->source. @size: -1 where it is not known. */
void http_call_upload(struct http_call *q, int64_t size);
/* http_call_timeout() - The whole request takes no longer than this. */
void http_call_timeout(struct http_call *q, long ms);

/* http_call_multi() - A handle for several requests. NULL: libcurl does not start. */
CURLM *http_call_multi(void);

/* http_call_start() - 0, or -ENOMEM: it does not run, and on_end is not called. */
int http_call_start(struct http_call *q, CURLM *multi);
/* http_call_perform() - Runs it by itself, to its end. on_end is not called. */
CURLcode http_call_perform(struct http_call *q);
/* http_call_connect() - Connects and sends nothing, for curl_easy_send() and curl_easy_recv(). */
CURLcode http_call_connect(struct http_call *q, curl_socket_t *ret);
/* http_call_stop() - Takes it off its multi handle, if it runs, and forgets its headers. */
void http_call_stop(struct http_call *q);
void http_call_free(struct http_call *q);

/* http_call_collect() - Calls on_end of each that is over. */
void http_call_collect(CURLM *multi);
/* http_call_step() - Lets all of them go on, without waiting. False: libcurl gave up. */
bool http_call_step(CURLM *multi);

/* http_call_status() - Of the latest answer; 0 before there is one. */
int http_call_status(const struct http_call *q);
/* http_call_why() - The reason of a failure, for people. May name machines and addresses. */
const char *http_call_why(const struct http_call *q, CURLcode code);

/* http_origin_is() - Whether both URLs have the same scheme, host and port. Pure. */
bool http_origin_is(const char *a, const char *b);

#endif
