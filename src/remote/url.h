/* SPDX-License-Identifier: Apache-2.0 */
/* url.h - Addresses of the daemon: the one that --url gives, and the paths of calls. */
#ifndef CAISSON_REMOTE_URL_H
#define CAISSON_REMOTE_URL_H

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct err;

struct url {
	char base[512]; /* scheme://host[:port][/prefix], without a slash at the end */
	char host[256]; /* without brackets and port */
	bool tls;
	bool loopback; /* requests stay on this machine */
};

/*
 * url_parse() - http:// or https://, a host, perhaps a port and a path before ours. A user, a query
 * or a fragment is refused: a password in an address ends up in histories. 0 or -EINVAL.
 */
int url_parse(const char *s, struct url *ret, struct err *e);

/* url_sandbox() - "/v1/sandboxes/NAME" and @rest, which begins with a slash or is empty. */
void url_sandbox(struct buf *b, const char *name, const char *rest);

/* url_escape() - Append, with everything but unreserved characters as %XX. */
void url_escape(struct buf *b, const char *s);

/* url_query() - Append "?key=value" or "&key=value", whichever is next. */
void url_query(struct buf *b, const char *key, const char *value);
void url_query_uint(struct buf *b, const char *key, unsigned long long value);

#endif
