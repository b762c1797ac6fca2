/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hello_http.c - The host of a first HTTP/1 request.
 *
 * Only methods that are in use are taken for HTTP; what begins otherwise is another protocol. A head that
 * servers read in different ways (two hosts, folded lines, bare CR, control bytes) is refused.
 */
#include "gate/hello.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/fd.h"

static const char *const methods[] = { "GET ",     "POST ",  "PUT ",     "HEAD ",  "DELETE ",
				       "OPTIONS ", "PATCH ", "CONNECT ", "TRACE ", "PRI " };

struct span {
	const char *p;
	size_t n;
};

static void say_bad(struct hello *h, const char *why)
{
	h->kind = HELLO_BAD;
	h->like = HELLO_HTTP;
	h->why = why;
}

/* HELLO_HTTP, HELLO_MORE when it may become one, HELLO_OTHER. */
static enum hello_kind method_of(struct span s, size_t *ret)
{
	enum hello_kind kind = HELLO_OTHER;

	for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
		size_t len = strlen(methods[i]);

		if (s.n >= len && memcmp(s.p, methods[i], len) == 0) {
			*ret = i;
			return HELLO_HTTP;
		}
		if (s.n < len && memcmp(s.p, methods[i], s.n) == 0)
			kind = HELLO_MORE;
	}
	return kind;
}

/* "host", "host:port", "[v6]:port". False: neither. */
static bool take_authority(struct hello *h, struct span s)
{
	size_t host = s.n;
	unsigned int port = 0;

	for (size_t i = s.n; i-- > 0 && s.p[i] != ']';)
		if (s.p[i] == ':')
			host = i;
	if (host == 0 || host >= sizeof(h->host) || memchr(s.p, '@', s.n))
		return false;
	for (size_t i = host + 1; i < s.n; i++) {
		if (s.p[i] < '0' || s.p[i] > '9' || port > 65535)
			return false;
		port = port * 10 + (unsigned int)(s.p[i] - '0');
	}
	if (port > 65535)
		return false;
	for (size_t i = 0; i < host; i++) {
		char c = s.p[i];

		if (c <= ' ' || c >= 0x7f)
			return false;
		h->host[i] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
	}
	h->host[host] = '\0';
	h->port = (uint16_t)port;
	return true;
}

static bool is_same(const struct hello *a, const struct hello *b)
{
	return strcmp(a->host, b->host) == 0 && a->port == b->port;
}

/* What the request line itself says about whom it is for: absolute form and CONNECT. */
static void read_target(struct hello *h, struct span s, bool is_connect)
{
	static const char *const schemes[] = { "http://", "https://" };

	if (is_connect) {
		if (!take_authority(h, s))
			say_bad(h, "what it asks to be connected to can not be read");
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(schemes); i++) {
		size_t n = strlen(schemes[i]);

		if (s.n <= n || strncasecmp(s.p, schemes[i], n) != 0)
			continue;
		struct span a = { s.p + n, 0 };

		while (n + a.n < s.n && !memchr("/?#", a.p[a.n], 3))
			a.n++;
		if (!take_authority(h, a))
			say_bad(h, "the host of its target can not be read");
		return;
	}
}

static void read_line(struct hello *h, struct span s, size_t method)
{
	const char *target = memchr(s.p, ' ', s.n);
	const char *version = target ? memrchr(s.p, ' ', s.n) : NULL;

	if (strncmp(methods[method], "PRI", 3) == 0) {
		say_bad(h, "HTTP/2 without TLS does not show whom it is for");
		return;
	}
	if (!target || version <= target + 1 || s.p + s.n - version != 9 ||
	    memcmp(version, " HTTP/1.", 8) != 0) {
		say_bad(h, "its first line is not of HTTP/1");
		return;
	}
	read_target(h, (struct span){ target + 1, (size_t)(version - target - 1) },
		    strncmp(methods[method], "CONNECT", 7) == 0);
}

static void read_header(struct hello *h, struct span s, struct hello *ret_host)
{
	const char *colon = memchr(s.p, ':', s.n);
	struct span v;

	if (s.p[0] == ' ' || s.p[0] == '\t' || !colon || colon == s.p || colon[-1] == ' ' ||
	    colon[-1] == '\t') {
		say_bad(h, "a header of it can be read in two ways");
		return;
	}
	if (colon - s.p != 4 || strncasecmp(s.p, "host", 4) != 0)
		return;
	v = (struct span){ colon + 1, (size_t)(s.p + s.n - colon - 1) };
	while (v.n > 0 && (v.p[0] == ' ' || v.p[0] == '\t'))
		v.p++, v.n--;
	while (v.n > 0 && (v.p[v.n - 1] == ' ' || v.p[v.n - 1] == '\t'))
		v.n--;
	if (ret_host->host[0])
		say_bad(h, "it has two Host headers");
	else if (!take_authority(ret_host, v))
		say_bad(h, "its Host header can not be read");
}

/* The next line, without its end. False: it is not whole. */
static bool next_line(struct span *rest, struct span *ret, struct hello *h)
{
	const char *nl = memchr(rest->p, '\n', rest->n);
	size_t n = nl ? (size_t)(nl - rest->p) : 0;

	if (!nl)
		return false;
	*ret = (struct span){ rest->p, n > 0 && rest->p[n - 1] == '\r' ? n - 1 : n };
	for (size_t i = 0; i < ret->n; i++)
		if ((unsigned char)ret->p[i] < ' ' && ret->p[i] != '\t')
			say_bad(h, "it has control bytes in its head");
	rest->p += n + 1;
	rest->n -= n + 1;
	return true;
}

void hello_http(const uint8_t *p, size_t len, struct hello *ret)
{
	struct span rest = { (const char *)p, len }, line;
	struct hello host = { 0 };
	size_t method = 0;

	*ret = (struct hello){ .kind = HELLO_MORE, .like = HELLO_HTTP };
	enum hello_kind k = method_of(rest, &method);

	if (k != HELLO_HTTP) {
		ret->kind = k;
		return;
	}
	if (!next_line(&rest, &line, ret))
		return;
	if (ret->kind != HELLO_BAD)
		read_line(ret, line, method);
	while (ret->kind != HELLO_BAD) {
		if (!next_line(&rest, &line, ret))
			return;
		if (ret->kind == HELLO_BAD)
			return;
		if (line.n == 0)
			break;
		read_header(ret, line, &host);
	}
	if (ret->kind == HELLO_BAD)
		return;
	ret->kind = HELLO_HTTP;
	if (ret->host[0] && host.host[0] && !is_same(ret, &host))
		say_bad(ret, "its target and its Host header name different hosts");
	else if (!ret->host[0]) {
		memcpy(ret->host, host.host, sizeof(ret->host));
		ret->port = host.port;
	}
}

void hello_look(const uint8_t *p, size_t len, struct hello *ret)
{
	*ret = (struct hello){ .kind = HELLO_MORE, .like = HELLO_OTHER };
	if (len == 0)
		return;
	if (p[0] == 22 && len == 1)
		ret->like = HELLO_TLS;
	else if (p[0] == 22 && p[1] == 3)
		hello_tls(p, len, ret);
	else
		hello_http(p, len, ret);
	if (ret->kind == HELLO_MORE && len >= HELLO_PEEK_MAX) {
		ret->kind = HELLO_BAD;
		ret->why = "its head is too large to be looked at";
	}
}
