/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_header.c - Questions about the headers of one message. See http_header.h.
 *
 * A relay drops the headers that are between two neighbours only (RFC 9110, 7.6.1): a fixed list,
 * headers that are for proxies (Proxy-Authorization is not for the server), and headers that
 * Connection names. Host and Content-Length always pass, whatever Connection says: without them the
 * server would read another request than the one that was judged, or two requests.
 */
#include "net/http_header.h"

#include <string.h>
#include <strings.h>

#include "net/http.h"

const char *header_find(const struct http_request *q, const char *lower_name)
{
	for (size_t i = 0; i < q->n_headers; i++)
		if (strcmp(q->headers[i].name, lower_name) == 0)
			return q->headers[i].value;
	return NULL;
}

bool header_has_token(const char *list, const char *token)
{
	size_t want = strlen(token);

	for (const char *at = list ? list : ""; *at;) {
		at += strspn(at, ", \t");
		size_t len = strcspn(at, ", \t");

		if (len == want && strncasecmp(at, token, want) == 0)
			return true;
		at += len;
	}
	return false;
}

bool header_is_tchar(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("!#$%&'*+-.^_`|~", c));
}

bool header_is_in(const char *name, const char *const *list)
{
	for (; *list; list++)
		if (strcmp(name, *list) == 0)
			return true;
	return false;
}

bool header_is_hop(const char *name, const char *connection)
{
	static const char *const hop[] = { "connection", "keep-alive",        "te", "trailer",
					   "upgrade",    "transfer-encoding", NULL };
	static const char *const end_to_end[] = { "host", "content-length", NULL };

	return !header_is_in(name, end_to_end) &&
	       (header_is_in(name, hop) || strncmp(name, "proxy-", 6) == 0 ||
		header_has_token(connection, name));
}

bool header_switches(const struct http_request *q)
{
	const char *to = header_find(q, "upgrade"), *length = header_find(q, "content-length");

	return to && *to && !strpbrk(to, ", \t") && !q->http10 && strcmp(q->method, "GET") == 0 &&
	       header_has_token(header_find(q, "connection"), "upgrade") &&
	       !header_find(q, "transfer-encoding") && (!length || strcmp(length, "0") == 0);
}
