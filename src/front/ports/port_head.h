/* SPDX-License-Identifier: Apache-2.0 */
/*
 * port_head.h - What a service in a sandbox gets to see of a request, and a client of its answer.
 * Pure.
 *
 * Towards the service: its own path, `Host: localhost:PORT`, one connection per request. Never the
 * tokens of daemon or port, never X-Caisson-*, Referer or hop-by-hop headers, and of cookies only
 * those that it has set itself: a browser sends everything it has for the daemon's host, whichever
 * port that came from. X-Forwarded-* are ours, whatever the client said.
 *
 * Towards the client: framing is ours; cookies are confined below the port's path and marked by
 * their name, redirects to itself stay below it, and what would speak for the daemon's whole origin
 * (Clear-Site-Data, Strict-Transport-Security, Alt-Svc, ...) is dropped.
 */
#ifndef CAISSON_FRONT_PORT_HEAD_H
#define CAISSON_FRONT_PORT_HEAD_H

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct http_request;

#define PORT_PREFIX_MAX 192
#define PORT_TOKEN_LEN 64
#define PORT_BARE "caisson-tcp"
#define PORT_COOKIE "caisson-port-" /* begins the name of a cookie that a service has set */

/* How a request came to its port. */
struct port_way {
	unsigned int number;
	char prefix[PORT_PREFIX_MAX]; /* of the client's paths, without a slash at its end */
	char shown[PORT_PREFIX_MAX];  /* the same without the token: for the service */
	const char *peer, *proto;     /* "127.0.0.1"; "http", "https" */
	bool hide_authorization, hide_api_key; /* they are the daemon's */
	bool own_page; /* a page of the service itself asks: by the token's path, from no origin */
	bool switches; /* asks for another protocol */
	bool bare;     /* asks us for PORT_BARE: the service's own bytes, without HTTP */
};

/* port_way_set() - @token: in the client's path, or NULL. Fills number, prefix and shown. */
void port_way_set(struct port_way *w, const char *sandbox, unsigned int number, const char *token);

/*
 * port_name_parse() - "8000", or "8000~TOKEN": then @token gets it, else it is empty.
 * Return: false when it is neither.
 */
bool port_name_parse(const char *text, unsigned int *number, char token[PORT_TOKEN_LEN + 1]);

/* port_hide() - Take the token out of a path, for the log. @out has room for @size bytes; cut. */
void port_hide(const char *path, char *out, size_t size);

/* port_switches() - Whether the request asks for another protocol in a way that can be passed on.
 */
bool port_switches(const struct http_request *q);

/* port_own_path() - How much of a path as it was sent is ours: up to the slash behind a port, which
 * is its service's from there on. Pure. */
size_t port_own_path(const char *path, size_t len);

/* port_inner_target() - Where the service's own path begins in a target as it was sent. */
const char *port_inner_target(const char *target);

/* port_request_head() - The head for the service, whole. 0, or the error of @out. */
int port_request_head(const struct http_request *q, const struct port_way *w, struct buf *out);

/*
 * port_answer_header() - One header of the answer; @name in lower case.
 * @connection: the answer's Connection header, or NULL
 * @out: replaced by the value for the client
 * Return: false: it is not for the client.
 */
bool port_answer_header(const struct port_way *w, const char *connection, const char *name,
			const char *value, struct buf *out);

#endif
