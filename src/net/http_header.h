/* SPDX-License-Identifier: Apache-2.0 */
/* http_header.h - Questions about the headers of one message, which server and relays share.
 * Pure. */
#ifndef CAISSON_NET_HTTP_HEADER_H
#define CAISSON_NET_HTTP_HEADER_H

#include <stdbool.h>

struct http_request;

/* header_find() - The value of a request's header, or NULL. */
const char *header_find(const struct http_request *q, const char *lower_name);

/* header_has_token() - Whether a list (NULL: none) separated by commas or blanks has @token, in any
 * case. */
bool header_has_token(const char *list, const char *token);

/* header_is_tchar() - A byte of a token (RFC 9110, 5.6.2). */
bool header_is_tchar(unsigned char c);

/* header_is_in() - Whether @name is in @list, which ends with NULL. Case counts. */
bool header_is_in(const char *name, const char *const *list);

/*
 * header_is_hop() - Whether a header is for the neighbouring program alone, so that a relay does
 * not pass it on.
 * @name: in lower case. @connection: the value of the message's Connection header, or NULL
 */
bool header_is_hop(const char *name, const char *connection);

/* header_switches() - Whether a request asks for another protocol in a form that a relay can pass
 * on: GET of HTTP/1.1 without a body, one protocol, Connection: upgrade. */
bool header_switches(const struct http_request *q);

#endif
