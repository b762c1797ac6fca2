/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target.h - The request target, Host and query parameters: split, checked, decoded once.
 *
 * Pure functions over views. A path is decoded exactly once and never resolved: parts that would
 * need resolving ("." and "..", an encoded slash) or that other programs read differently (NUL,
 * backslash, bytes that are not UTF-8) are refused, and the reason is a static text.
 */
#ifndef CAISSON_NET_TARGET_H
#define CAISSON_NET_TARGET_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

struct target {
	const char *authority; /* of the absolute form, else NULL */
	size_t authority_len;
	/* Undecoded; "*" for the asterisk form; empty: an absolute form without one. */
	const char *path;
	size_t path_len;
	const char *query; /* after '?'; NULL without one */
	size_t query_len;
};

/*
 * target_split() - Origin form, absolute form (http, https) or "*". Views into @s.
 * Return: 0, or -EINVAL with *ret_why set.
 */
int target_split(const char *s, size_t len, struct target *ret, const char **ret_why);

/*
 * target_decode_path() - Percent-decode a path that begins with '/'.
 * @own: the first @own bytes are the server's own; after them, an encoded slash stays encoded
 * @out: room for @len + 1 bytes; NUL-terminated on success.
 * Return: 0, or -EINVAL with *ret_why set.
 */
int target_decode_path(const char *s, size_t len, size_t own, char *out, const char **ret_why);

/* host_valid() - Whether @s is a name, an IPv4 address or an [IPv6] address, with or without a
 * port. */
bool host_valid(const char *s, size_t len);

/*
 * query_next() - The next `name=value` of a query; '+' is a space, empty parts are skipped.
 * @pos:  where to go on; begin with the query's first byte
 * @name, @value: replaced by the decoded bytes; the name is UTF-8, the value may be any file name
 * Return: 1, 0 when there are no more, -EINVAL for a bad escape, NUL or a name that is not UTF-8,
 * or the error of a buffer that was too small.
 */
int query_next(const char **pos, struct buf *name, struct buf *value);

#endif
