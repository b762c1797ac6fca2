/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_path.h - The path of a request, in every way in which servers and proxies are known to read
 * it. Pure.
 *
 * Some servers decode a path twice, some drop the part after a ';' in each segment ("path
 * parameters"), some take a decoded '?' or '#' for the end of the path. A rule allows a request
 * only if it allows all of these readings. Parts that some servers resolve or fold into something
 * else are refused: segments of dots and spaces, empty segments, encoded slashes, backslashes,
 * control bytes, UTF-8 that is not the shortest form, characters that Unicode folds into a dot,
 * slash, backslash, percent sign or semicolon, and an escape that stands for one of these only when
 * it is decoded twice.
 */
#ifndef CAISSON_GATE_HTTP_PATH_H
#define CAISSON_GATE_HTTP_PATH_H

#include <stddef.h>

#define HTTP_READINGS_MAX 8u

struct http_readings {
	char *paths[HTTP_READINGS_MAX]; /* decoded; the first one is the usual reading */
	size_t n;
};

/*
 * http_path_read() - @raw: as sent, without its query.
 * Return: 0; -EINVAL and *ret_why, a static text; -ENOMEM. On failure there is nothing to free.
 */
int http_path_read(const char *raw, struct http_readings *ret, const char **ret_why);
void http_readings_free(struct http_readings *r);

#endif
