/* SPDX-License-Identifier: Apache-2.0 */
/* url.h - Addresses: the daemon that --url names, paths of calls, files here or in a sandbox. */
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

/* url_query() - Append "?key=value" or "&key=value", whichever is next. */
void url_query(struct buf *b, const char *key, const char *value);
void url_query_uint(struct buf *b, const char *key, unsigned long long value);

/* ---- PATH and NAME:PATH, as arguments name a file here or in a sandbox ---------------------- */

#define SANDBOX_NAME_MAX 64

struct sandbox_path {
	bool remote;
	char name[SANDBOX_NAME_MAX + 1]; /* of the sandbox; empty when it is here */
	const char *path;                /* borrowed from what was parsed; never empty */
};

/* sandbox_name_valid() - Whether it is a name: letters, digits, '.', '_', '-'. */
bool sandbox_name_valid(const char *s, size_t len);

/* sandbox_name_check() - The same with a message. 0 or -EINVAL. */
int sandbox_name_check(const char *s, struct err *e);

/*
 * sandbox_path_parse() - The text before the first colon is the sandbox, unless it has a slash:
 * "./a:b" is a file here. "NAME:" is the sandbox's working directory. 0 or -EINVAL.
 */
int sandbox_path_parse(const char *arg, struct sandbox_path *ret, struct err *e);

/* sandbox_path_base() - The last part of a path, without trailing slashes: @len bytes. Of "/" it is
 * empty. */
const char *sandbox_path_base(const char *path, size_t *len);

#endif
