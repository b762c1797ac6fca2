/* SPDX-License-Identifier: Apache-2.0 */
/* url.c - Take addresses and NAME:PATH apart; put paths and queries together. */
#include "remote/url.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"

static bool is_loopback(const char *host)
{
	struct in6_addr six;
	struct in_addr four;

	if (inet_pton(AF_INET, host, &four) == 1)
		return ntohl(four.s_addr) >> 24 == 127;
	if (inet_pton(AF_INET6, host, &six) == 1)
		return IN6_IS_ADDR_LOOPBACK(&six);
	return strcmp(host, "localhost") == 0;
}

/* The host between scheme and path: a name, an IPv4 address, or an IPv6 address in brackets. */
static int take_host(const char *s, size_t len, struct url *u)
{
	const char *end = s + len, *port = NULL;
	size_t n;
	uint64_t number;
	char digits[8];

	if (len > 0 && s[0] == '[') {
		const char *close = memchr(s, ']', len);

		if (!close)
			return -EINVAL;
		n = (size_t)(close - s - 1);
		s++;
		port = close + 1;
	} else {
		port = memchr(s, ':', len);
		n = port ? (size_t)(port - s) : len;
		port = port ? port : end;
	}
	if (n == 0 || n >= sizeof(u->host))
		return -EINVAL;
	memcpy(u->host, s, n);
	u->host[n] = '\0';
	if (port == end)
		return 0;
	size_t n_port = (size_t)(end - port - 1);

	if (*port != ':' || n_port == 0 || n_port >= sizeof(digits))
		return -EINVAL;
	memcpy(digits, port + 1, n_port);
	digits[n_port] = '\0';
	return num_parse_u64(digits, 1, 65535, &number, NULL) < 0 ? -EINVAL : 0;
}

int url_parse(const char *s, struct url *ret, struct err *e)
{
	static const char form[] = "must be http://HOST[:PORT] or https://HOST[:PORT]";
	struct url u = { 0 };
	size_t skip = strncmp(s, "http://", 7) == 0 ? 7 : strncmp(s, "https://", 8) == 0 ? 8 : 0;
	size_t len = strlen(s);

	if (skip == 0)
		return err_say(e, -EINVAL, "%s", form);
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)s[i] <= ' ' || (unsigned char)s[i] >= 0x7f ||
		    strchr("\"<>\\^`{|}", s[i]))
			return err_say(e, -EINVAL, "%s, without spaces and special characters",
				       form);
	if (strpbrk(s, "?#"))
		return err_say(e, -EINVAL, "%s, without a query", form);
	size_t n = strcspn(s + skip, "/");

	if (memchr(s + skip, '@', n))
		return err_say(
			e, -EINVAL,
			"%s, without a user: put a token in a file and name it with --token-file",
			form);
	while (len > skip && s[len - 1] == '/')
		len--;
	if (len >= sizeof(u.base))
		return err_say(e, -EINVAL, "is too long");
	u.tls = skip == 8;
	if (take_host(s + skip, n, &u) < 0)
		return err_say(e, -EINVAL, "%s", form);
	memcpy(u.base, s, len);
	u.loopback = is_loopback(u.host);
	*ret = u;
	return 0;
}

void url_sandbox(struct buf *b, const char *name, const char *rest)
{
	(void)buf_puts(b, "/v1/sandboxes/");
	buf_escape(b, name, "");
	(void)buf_puts(b, rest);
}

void url_query(struct buf *b, const char *key, const char *value)
{
	(void)buf_puts(b, strchr(buf_str(b), '?') ? "&" : "?");
	buf_escape(b, key, "");
	(void)buf_puts(b, "=");
	buf_escape(b, value, "");
}

void url_query_uint(struct buf *b, const char *key, unsigned long long value)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%llu", value);
	url_query(b, key, text);
}

/* ---- files --------------------------------------------------------------------------------- */

bool sandbox_name_valid(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		bool alnum = (s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z') ||
			     (s[i] >= '0' && s[i] <= '9');

		if (!alnum && (i == 0 || !(s[i] && strchr("._-", s[i]))))
			return false;
	}
	return len > 0 && len <= SANDBOX_NAME_MAX;
}

int sandbox_name_check(const char *s, struct err *e)
{
	if (sandbox_name_valid(s, strlen(s)))
		return 0;
	return err_say(e, -EINVAL,
		       "invalid sandbox name '%.80s': give 1 to %d letters, digits, '.', '_' or "
		       "'-', beginning with a letter or digit",
		       s, SANDBOX_NAME_MAX);
}

int sandbox_path_parse(const char *arg, struct sandbox_path *ret, struct err *e)
{
	const char *colon = strchr(arg, ':'), *slash = strchr(arg, '/');
	size_t len = colon ? (size_t)(colon - arg) : 0;

	*ret = (struct sandbox_path){ .path = arg };
	if (!*arg)
		return err_say(e, -EINVAL, "the name of a file is empty");
	if (!colon || (slash && slash < colon))
		return 0;
	if (!sandbox_name_valid(arg, len))
		return err_say(
			e, -EINVAL,
			"invalid sandbox name '%.*s'; for a local file with a colon in its name, "
			"give ./%.80s",
			len > 80 ? 80 : (int)len, arg, arg);
	ret->remote = true;
	memcpy(ret->name, arg, len);
	ret->path = colon[1] ? colon + 1 : ".";
	return 0;
}

const char *sandbox_path_base(const char *path, size_t *len)
{
	size_t end = strlen(path);

	while (end > 0 && path[end - 1] == '/')
		end--;
	size_t start = end;

	while (start > 0 && path[start - 1] != '/')
		start--;
	*len = end - start;
	return path + start;
}
