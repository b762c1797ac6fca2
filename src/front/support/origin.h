/* SPDX-License-Identifier: Apache-2.0 */
/*
 * origin.h - Host headers and web origins, taken apart and compared.
 *
 * Both are text from strangers. Names come out in lower case without a final dot, addresses in the
 * one spelling that inet_ntop() gives, so that two hosts are the same exactly when their text is.
 * Forms that no browser or client sends (user parts, paths, zones, odd spellings of IPv4) are
 * refused.
 */
#ifndef CAISSON_FRONT_ORIGIN_H
#define CAISSON_FRONT_ORIGIN_H

#include <stdbool.h>

#define ORIGIN_HOST_MAX 254

struct origin {
	char scheme[32];            /* "" when it was parsed from a Host header */
	char host[ORIGIN_HOST_MAX]; /* IPv6 without brackets */
	unsigned int port;          /* 0: not given; for http and https the default is filled in */
	bool is_address;            /* an IPv4 or IPv6 literal */
	bool is_any;                /* 0.0.0.0 or :: */
};

/* origin_parse_host() - "name", "name:8001", "127.0.0.1:8001", "[::1]:8001". Pure. */
bool origin_parse_host(const char *text, struct origin *ret);

/* origin_parse() - "http://localhost:8001"; no path, not "null". Pure. */
bool origin_parse(const char *text, struct origin *ret);

/* origin_same_host() - Name or address alone, whatever the port. */
bool origin_same_host(const struct origin *a, const struct origin *b);

/* origin_equal() - Scheme, host and port. */
bool origin_equal(const struct origin *a, const struct origin *b);

/*
 * origin_matches_host() - Whether a page of origin @o talks to its own server, when the request's
 * Host is @host. A Host without a port means the default port of the page's scheme; the scheme
 * itself is not compared, because TLS may end at a proxy before us.
 */
bool origin_matches_host(const struct origin *o, const struct origin *host);

#endif
