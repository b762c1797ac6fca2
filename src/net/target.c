/* SPDX-License-Identifier: Apache-2.0 */
/* target.c - Request targets, Host and query parameters. See target.h. */
#include "net/target.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/num.h"
#include "base/utf8.h"

static int refuse(const char **ret_why, const char *why)
{
	*ret_why = why;
	return -EINVAL;
}

/* Length of "http://" or "https://" at @s, in any case; 0: neither. */
static size_t scheme(const char *s, size_t len)
{
	if (len >= 7 && strncasecmp(s, "http://", 7) == 0)
		return 7;
	return len >= 8 && strncasecmp(s, "https://", 8) == 0 ? 8 : 0;
}

int target_split(const char *s, size_t len, struct target *ret, const char **ret_why)
{
	struct target t = { .path = s, .path_len = len };
	size_t skip = scheme(s, len);

	if (memchr(s, '#', len))
		return refuse(ret_why, "a fragment ('#') in the request target");
	if (skip > 0) {
		const char *rest = s + skip, *end = s + len, *p = rest;

		while (p < end && *p != '/' && *p != '?')
			p++;
		t.authority = rest;
		t.authority_len = (size_t)(p - rest);
		t.path = p;
		t.path_len = (size_t)(end - p);
		if (!host_valid(t.authority, t.authority_len))
			return refuse(ret_why, "the host in the request target is malformed");
	} else if (len == 1 && s[0] == '*') {
		*ret = t;
		return 0;
	} else if (len == 0 || s[0] != '/') {
		return refuse(ret_why, "the request target does not begin with '/'");
	}

	const char *mark = memchr(t.path, '?', t.path_len);

	if (mark) {
		t.query = mark + 1;
		t.query_len = t.path_len - (size_t)(t.query - t.path);
		t.path_len = (size_t)(mark - t.path);
	}
	*ret = t;
	return 0;
}

/* "." and ".." between slashes; @s begins with one. */
static bool has_dot_segment(const char *s)
{
	for (const char *p = s; *p;) {
		const char *segment = p + 1;
		size_t len = strcspn(segment, "/");

		if ((len == 1 && segment[0] == '.') || (len == 2 && memcmp(segment, "..", 2) == 0))
			return true;
		p = segment + len;
	}
	return false;
}

int target_decode_path(const char *s, size_t len, size_t own, char *out, const char **ret_why)
{
	size_t n = 0;

	if (len == 0 || s[0] != '/')
		return refuse(ret_why, "the path does not begin with '/'");
	for (size_t i = 0; i < len; i++) {
		int byte = (unsigned char)s[i];

		if (s[i] == '%') {
			byte = hex_escape(s + i, len - i);
			if (byte < 0)
				return refuse(ret_why, "a malformed percent escape in the path");
			if (byte == '/' && i < own)
				return refuse(ret_why, "an encoded slash in the path");
			if (byte == '/') {
				out[n++] = s[i++];
				out[n++] = s[i++];
				byte = (unsigned char)s[i];
			} else {
				i += 2;
			}
		}
		if (byte == '\0')
			return refuse(ret_why, "a NUL byte in the path");
		if (byte == '\\')
			return refuse(ret_why, "a backslash in the path");
		out[n++] = (char)byte;
	}
	out[n] = '\0';
	if (!utf8_valid(out, n))
		return refuse(ret_why, "the path is not valid UTF-8");
	if (has_dot_segment(out))
		return refuse(ret_why, "a '.' or '..' segment in the path");
	return 0;
}

static bool is_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* ":" and a number up to 65535, or an empty text. */
static bool port_valid(const char *s, size_t len)
{
	uint64_t port;

	return len == 0 ||
	       (s[0] == ':' && len <= 6 && num_digits(s + 1, len - 1, &port) && port <= 65535);
}

bool host_valid(const char *s, size_t len)
{
	size_t i = 0;

	if (len > 0 && s[0] == '[') {
		const char *end = memchr(s, ']', len);

		if (!end || end == s + 1)
			return false;
		for (i = 1; s[i] != ']'; i++)
			if (hex_digit(s[i]) < 0 && s[i] != ':' && s[i] != '.')
				return false;
		return port_valid(end + 1, len - (size_t)(end + 1 - s));
	}
	while (i < len && (is_alnum(s[i]) || s[i] == '.' || s[i] == '-' || s[i] == '_'))
		i++;
	return i > 0 && i <= 255 && port_valid(s + i, len - i);
}

/* Decode @len bytes of a query into @out, which is emptied first. */
static int decode(const char *s, size_t len, struct buf *out)
{
	buf_clear(out);
	for (size_t i = 0; i < len; i++) {
		int byte = s[i] == '+' ? ' ' : (unsigned char)s[i];

		if (s[i] == '%') {
			byte = hex_escape(s + i, len - i);
			i += 2;
		}
		if (byte <= 0)
			return -EINVAL;

		char c = (char)byte;

		(void)buf_append(out, &c, 1);
	}
	return out->err;
}

int query_next(const char **pos, struct buf *name, struct buf *value)
{
	const char *s = *pos + strspn(*pos, "&");
	size_t len = strcspn(s, "&"), split = strcspn(s, "&=");
	size_t skip = split < len ? split + 1 : len;
	int r;

	if (len == 0)
		return 0;
	*pos = s + len;
	r = decode(s, split, name);
	if (r == 0 && !utf8_valid(buf_str(name), name->len))
		r = -EINVAL;
	if (r == 0)
		r = decode(s + skip, len - skip, value);
	return r < 0 ? r : 1;
}
