/* SPDX-License-Identifier: Apache-2.0 */
/*
 * port_head.h - The head of a request as a service in a sandbox gets it, and of its answer as the
 * client gets it. Pure.
 *
 * To the service: its own path, `Host: localhost:PORT`, one connection per request. It never gets
 * a header or cookie that has a token of the daemon, whatever its name is, the token of the port,
 * X-Caisson-*, Referer or hop-by-hop headers, and of cookies only
 * those that it has set itself: a browser sends all cookies of the daemon's host, whichever port
 * they came from. The daemon sets X-Forwarded-*, whatever the client sent.
 *
 * To the client: the daemon does the framing; cookies are confined below the port's path and marked
 * by their name, redirects of the service to itself stay below that path, and headers that would
 * speak for the daemon's whole origin (Clear-Site-Data, Strict-Transport-Security, Alt-Svc, ...)
 * are dropped.
 */
#ifndef CAISSON_FRONT_PORT_HEAD_H
#define CAISSON_FRONT_PORT_HEAD_H

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct http_request;

#define PORT_PREFIX_MAX 192
#define PORT_TOKEN_LEN 64
#define PORT_HIDE_MIN 8 /* so many hexadecimal digits behind '~' resemble a token */
#define PORT_BARE "caisson-tcp"
#define PORT_COOKIE "caisson-port-" /* begins the name of a cookie that a service has set */

/* How a request came to its port. */
struct port_way {
	unsigned int number;
	char prefix[PORT_PREFIX_MAX]; /* of the client's paths, without a slash at its end */
	char shown[PORT_PREFIX_MAX];  /* the same without the token: for the service */
	const char *peer, *proto;     /* "127.0.0.1"; "http", "https" */
	/* Whether a text has a token of the daemon; NULL: no text has. */
	bool (*is_secret)(const void *secrets, const char *text, size_t len);
	const void *secrets;
	bool own_page; /* sent by a page of the service: token in the path, no origin */
	bool switches; /* asks for another protocol */
	bool bare;     /* asks us for PORT_BARE: the service's own bytes, without HTTP */
};

/* port_way_set() - @token: in the client's path, or NULL. Fills number, prefix and shown. */
void port_way_set(struct port_way *w, const char *sandbox, unsigned int number, const char *token);

/*
 * port_name_parse() - "8000", or "8000~TOKEN": then @token gets it, else it is empty.
 * Return: false when it has neither form.
 */
bool port_name_parse(const char *text, unsigned int *number, char token[PORT_TOKEN_LEN + 1]);

/*
 * port_hide() - A path without tokens of ports, for the log: "~TOKEN" is removed wherever it is,
 * and so is everything that only resembles it. @out has room for @size > 0 bytes; cut.
 */
void port_hide(const char *path, char *out, size_t size);

/* port_own_path() - How many bytes of an undecoded path are the daemon's: up to the slash behind
 * the port; the rest is for the service. Pure. */
size_t port_own_path(const char *path, size_t len);

/* port_inner_target() - Where the path for the service begins in an undecoded target. */
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
