/* SPDX-License-Identifier: Apache-2.0 */
/* port_head.c - Rewrite the heads of requests and answers that go through a port; see port_head.h.
 */
#include "front/ports/port_head.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/num.h"
#include "net/http.h"
#include "net/http_header.h"

#define SEGMENTS 5 /* /v1/sandboxes/{name}/ports/{port} */

void port_way_set(struct port_way *w, const char *sandbox, unsigned int number, const char *token)
{
	w->number = number;
	(void)snprintf(w->shown, sizeof(w->shown), "/v1/sandboxes/%.64s/ports/%u", sandbox, number);
	(void)snprintf(w->prefix, sizeof(w->prefix), "/v1/sandboxes/%.64s/ports/%u%s%.64s", sandbox,
		       number, token ? "~" : "", token ? token : "");
}

bool port_name_parse(const char *text, unsigned int *number, char token[PORT_TOKEN_LEN + 1])
{
	size_t digits = strspn(text, "0123456789");
	const char *rest = text + digits;
	char head[8];
	uint64_t n = 0;

	token[0] = '\0';
	if (digits == 0 || digits >= sizeof(head) || text[0] == '0')
		return false;
	memcpy(head, text, digits);
	head[digits] = '\0';
	if (num_parse_u64(head, 1, 65535, &n, NULL) < 0)
		return false;
	*number = (unsigned int)n;
	if (!*rest)
		return true;
	if (*rest++ != '~' || strlen(rest) != PORT_TOKEN_LEN ||
	    strspn(rest, "0123456789abcdef") != PORT_TOKEN_LEN)
		return false;
	memcpy(token, rest, PORT_TOKEN_LEN + 1);
	return true;
}

/* The length of the '~' at @s, which may be encoded any number of times; 0: another character. */
static size_t tilde(const char *s)
{
	size_t n = 1;

	if (*s == '~')
		return 1;
	if (*s != '%')
		return 0;
	while (s[n] == '2' && s[n + 1] == '5')
		n += 2;
	return s[n] == '7' && (s[n + 1] | 0x20) == 'e' ? n + 2 : 0;
}

/*
 * The length of the '~' at @s and the possible token behind it; or 0. The place in the path
 * does not count: sandboxes and files have any names, and a path that no route has is logged too.
 * Behind a number everything up to the slash counts, because a token with a mistyped character is
 * almost the token. Elsewhere the digits of a token do, also if some are missing.
 */
static size_t hidden(bool behind_number, const char *s)
{
	size_t mark = tilde(s);

	if (mark == 0)
		return 0;
	if (behind_number)
		return mark + strcspn(s + mark, "/");
	size_t hex = strspn(s + mark, "0123456789abcdefABCDEF");

	return hex >= PORT_HIDE_MIN ? mark + hex : 0;
}

void port_hide(const char *path, char *out, size_t size)
{
	const char *segment = path;
	bool number = true; /* the segment has only digits so far */
	size_t n = 0;

	for (const char *at = path; *at && n + 1 < size;) {
		size_t skip = hidden(number && at > segment, at);

		at += skip;
		if (skip > 0)
			continue;
		number = *at == '/' || (number && *at >= '0' && *at <= '9');
		if (*at == '/')
			segment = at + 1;
		out[n++] = *at++;
	}
	out[n] = '\0';
}

static bool starts_with(const char *s, const char *with)
{
	return strncmp(s, with, strlen(with)) == 0;
}

/* ---- requests ------------------------------------------------------------------------------ */

size_t port_own_path(const char *path, size_t len)
{
	static const char *const words[SEGMENTS] = { "v1", "sandboxes", NULL, "ports", NULL };
	size_t at = 0;

	for (size_t i = 0; i < SEGMENTS; i++) {
		const char *segment = path + at + 1;
		const char *slash = at + 1 < len ? memchr(segment, '/', len - at - 1) : NULL;

		if (!slash || path[at] != '/')
			return len;
		size_t n = (size_t)(slash - segment);

		if (n == 0 || memchr(segment, '%', n) ||
		    (words[i] && (n != strlen(words[i]) || memcmp(segment, words[i], n) != 0)))
			return len;
		at += n + 1;
	}
	return at + 1;
}

/* The prefix has as many segments in the undecoded target as in the decoded path. */
const char *port_inner_target(const char *target)
{
	for (int i = 0; i <= SEGMENTS; i++) {
		const char *slash = *target ? strchr(target + (i > 0), '/') : NULL;

		if (!slash)
			return "/";
		target = slash;
	}
	return target;
}

static bool is_secret(const struct port_way *w, const char *text, size_t len)
{
	return w->is_secret && w->is_secret(w->secrets, text, len);
}

/* Clients send tokens of the daemon in any header, so the value decides. */
static void put_line(struct buf *out, const struct port_way *w, const char *name, const char *value)
{
	if (!is_secret(w, value, strlen(value)))
		(void)buf_printf(out, "%s: %s\r\n", name, value);
}

/* Only cookies that the service has set, under the names that it used. */
static void put_cookies(struct buf *out, const struct port_way *w, const char *value)
{
	bool first = true;

	for (const char *at = value; *at;) {
		at += strspn(at, "; \t");
		size_t len = strcspn(at, ";");

		if (starts_with(at, PORT_COOKIE) && len > strlen(PORT_COOKIE) &&
		    !is_secret(w, at, len)) {
			(void)buf_puts(out, first ? "cookie: " : "; ");
			(void)buf_append(out, at + strlen(PORT_COOKIE), len - strlen(PORT_COOKIE));
			first = false;
		}
		at += len;
	}
	if (!first)
		(void)buf_puts(out, "\r\n");
}

/* For pages of the service itself: the origin that the service believes to have. */
static void put_origin(struct buf *out, const struct http_request *q, const struct port_way *w,
		       const char *origin)
{
	const char *after = strstr(origin, "://");
	bool own = strcmp(origin, "null") == 0 || (after && strcasecmp(after + 3, q->host) == 0);

	if (own)
		(void)buf_printf(out, "origin: http://localhost:%u\r\n", w->number);
	else
		put_line(out, w, "origin", origin);
}

/* Many services read '_' in a name as '-'. */
static bool is_for_service(const char *connection, const char *as_sent)
{
	char name[40]; /* longer than every name below */
	static const char *const ours[] = { "host",      "cookie",    "origin", "referer", "expect",
					    "forwarded", "x-real-ip", "via",    NULL };

	(void)snprintf(name, sizeof(name), "%s", as_sent);
	for (char *c = name; *c; c++)
		*c = (char)(*c == '_' ? '-' : *c);
	return !header_is_hop(as_sent, connection) && !header_is_hop(name, NULL) &&
	       !header_is_in(name, ours) && !starts_with(name, "x-caisson-") &&
	       !starts_with(name, "x-forwarded-");
}

int port_request_head(const struct http_request *q, const struct port_way *w, struct buf *out)
{
	const char *connection = header_find(q, "connection"), *cookie = header_find(q, "cookie");
	const char *origin = header_find(q, "origin");

	(void)buf_printf(out, "%s %s HTTP/1.1\r\nhost: localhost:%u\r\n", q->method,
			 port_inner_target(q->target), w->number);
	for (size_t i = 0; i < q->n_headers; i++)
		if (is_for_service(connection, q->headers[i].name))
			put_line(out, w, q->headers[i].name, q->headers[i].value);
	if (cookie)
		put_cookies(out, w, cookie);
	if (origin)
		put_origin(out, q, w, origin);
	(void)buf_printf(out, "x-forwarded-for: %s\r\nx-forwarded-proto: %s\r\n", w->peer,
			 w->proto);
	put_line(out, w, "x-forwarded-host", q->host);
	(void)buf_printf(out, "x-forwarded-prefix: %s\r\n", w->shown);
	if (header_find(q, "transfer-encoding"))
		(void)buf_puts(out, "transfer-encoding: chunked\r\n");
	if (w->switches)
		put_line(out, w, "upgrade", header_find(q, "upgrade"));
	(void)buf_printf(out, "connection: %s\r\n\r\n", w->switches ? "upgrade" : "close");
	return out->err;
}

/* ---- answers ------------------------------------------------------------------------------- */

/* name=value and attributes; Domain is removed, and Path is rewritten. False: invalid cookie. */
static bool put_set_cookie(struct buf *out, const struct port_way *w, const char *value)
{
	const char *path = "/";
	size_t path_len = 1;

	value += strspn(value, " \t");
	size_t pair = strcspn(value, ";");

	if (*value == '=' || !memchr(value, '=', pair))
		return false;
	(void)buf_puts(out, PORT_COOKIE);
	(void)buf_append(out, value, pair);
	for (const char *at = value + pair; *at;) {
		at += strspn(at, "; \t");
		size_t len = strcspn(at, ";");

		if (len >= 5 && strncasecmp(at, "path=", 5) == 0) {
			path = at + 5;
			path_len = len - 5;
		} else if (len > 0 && !(len >= 6 && strncasecmp(at, "domain", 6) == 0)) {
			(void)buf_puts(out, "; ");
			(void)buf_append(out, at, len);
		}
		at += len;
	}
	bool absolute = path_len > 0 && path[0] == '/';

	(void)buf_printf(out, "; Path=%s%.*s", w->prefix, absolute ? (int)path_len : 1,
			 absolute ? path : "/");
	return true;
}

/* The text behind the authority, if that is the service itself; otherwise NULL. */
static const char *after_own_authority(const struct port_way *w, const char *s)
{
	static const char *const names[] = { "localhost", "127.0.0.1", "[::1]" };
	char own[40];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		int n = snprintf(own, sizeof(own), "%s:%u", names[i], w->number);
		size_t len = w->number == 80 && strncasecmp(s, own, (size_t)n) != 0 ?
				     strlen(names[i]) :
				     (size_t)n;

		if (strncasecmp(s, own, len) == 0 && (s[len] == '\0' || strchr("/?#", s[len])))
			return s + len;
	}
	return NULL;
}

static void put_location(struct buf *out, const struct port_way *w, const char *value)
{
	const char *inner = NULL;

	if (starts_with(value, "//"))
		inner = after_own_authority(w, value + 2);
	else if (value[0] == '/')
		inner = value;
	else if (strncasecmp(value, "http://", 7) == 0)
		inner = after_own_authority(w, value + 7);
	else if (strncasecmp(value, "https://", 8) == 0)
		inner = after_own_authority(w, value + 8);
	/* A service that knows its prefix may have put it in already. */
	size_t known = strlen(w->shown);

	if (inner && strncmp(inner, w->shown, known) == 0 && (inner[known] == '/' || !inner[known]))
		inner += known;
	if (inner)
		(void)buf_printf(out, "%s%s%s", w->prefix, *inner == '/' ? "" : "/", inner);
	else
		(void)buf_puts(out, value);
}

/* Not headers that the daemon sets, or that would speak for its whole origin or host. */
static bool is_for_client(const struct port_way *w, const char *name)
{
	static const char *const not [] = { "content-length",
					    "date",
					    "set-cookie2",
					    "alt-svc",
					    "clear-site-data",
					    "referrer-policy",
					    "strict-transport-security",
					    "public-key-pins",
					    "public-key-pins-report-only",
					    "expect-ct",
					    "service-worker-allowed",
					    "nel",
					    "report-to",
					    "reporting-endpoints",
					    "accept-ch",
					    "critical-ch",
					    "set-login",
					    NULL };

	return !header_is_in(name, not ) && !(w->own_page && starts_with(name, "access-control-"));
}

bool port_answer_header(const struct port_way *w, const char *connection, const char *name,
			const char *value, struct buf *out)
{
	buf_clear(out);
	if (header_is_hop(name, connection) || !is_for_client(w, name))
		return false;
	if (strcmp(name, "set-cookie") == 0)
		return put_set_cookie(out, w, value) && !out->err;
	if (strcmp(name, "location") == 0 || strcmp(name, "content-location") == 0)
		put_location(out, w, value);
	else
		(void)buf_puts(out, value);
	return !out->err;
}
