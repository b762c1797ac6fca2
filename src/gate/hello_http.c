/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hello_http.c - The host of a first HTTP/1 request.
 *
 * Theory of operation. Two questions, with opposite errors. Is it HTTP? Here the most lenient
 * server counts: white space of any kind before the first line and between its words, any first
 * word, "HTTP/" in front of the third word or the last one, or no version at all. Whom is it for?
 * Here the strictest reading counts: a head that servers read in different ways (two hosts, folded
 * lines, bare CR, control bytes) is refused.
 *
 * Another protocol may begin with words too, and wait for an answer before its line ends. So a line
 * that is not whole is HELLO_MORE, and like says whether a method that is in use begins it
 * (HELLO_HTTP) or anything else does (HELLO_OTHER).
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

/* What some server takes for white space: C's isspace(), and Python's str.split() on ISO 8859-1. */
static bool is_blank(char c)
{
	unsigned char b = (unsigned char)c;

	return b == ' ' || (b >= '\t' && b <= '\r') || (b >= 0x1c && b <= 0x1f) || b == 0x85 ||
	       b == 0xa0;
}

static bool is_token(char c)
{
	return c > ' ' && c < 0x7f && !strchr("\"(),/:;<=>?@[\\]{}", c);
}

/* Whether a method that is in use begins it, or it is the beginning of one. */
static bool is_in_use(struct span s)
{
	for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
		size_t len = strlen(methods[i]);

		if (memcmp(s.p, methods[i], s.n < len ? s.n : len) == 0)
			return true;
	}
	return false;
}

/* Parsers that know several protocols take the versions of all of them. */
static bool is_version(struct span word)
{
	static const char *const names[] = { "HTTP/", "RTSP/", "ICE/" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		size_t n = strlen(names[i]);

		if (word.n < n || strncasecmp(word.p, names[i], n) != 0)
			continue;
		while (n < word.n && ((word.p[n] >= '0' && word.p[n] <= '9') || word.p[n] == '.'))
			n++;
		return n == word.n;
	}
	return false;
}

/* Words of a line, the first three and the last one. How many there are. */
static size_t split(struct span line, struct span ret[3], struct span *ret_last)
{
	size_t n = 0;

	while (line.n > 0) {
		struct span word = { line.p, 0 };

		while (word.n < line.n && !is_blank(line.p[word.n]))
			word.n++;
		if (word.n > 0) {
			*ret_last = word;
			if (n < 3)
				ret[n] = word;
			n++;
		}
		line.p += word.n < line.n ? word.n + 1 : word.n;
		line.n -= word.n < line.n ? word.n + 1 : word.n;
	}
	return n;
}

/* HTTP/0.9, after which some servers read headers: a method and a target. */
static bool is_bare(struct span method, struct span target)
{
	for (size_t i = 0; i < method.n; i++)
		if (!(method.p[i] >= 'A' && method.p[i] <= 'Z') && !strchr("-_", method.p[i]))
			return false;
	return target.p[0] == '/' || target.p[0] == '*' || memmem(target.p, target.n, "://", 3);
}

/*
 * Whether it begins a request: HELLO_HTTP, HELLO_OTHER, or HELLO_MORE.
 * @s: becomes what follows the white space at its beginning
 */
static enum hello_kind kind_of(struct span *s, struct hello *h)
{
	struct span word[3] = { 0 }, last = { 0 };

	while (s->n > 0 && is_blank(s->p[0]))
		s->p++, s->n--;
	const char *nl = s->n > 0 ? memchr(s->p, '\n', s->n) : NULL;
	size_t n = split((struct span){ s->p, nl ? (size_t)(nl - s->p) : s->n }, word, &last);

	bool third = n > 2 && word[2].p + word[2].n < s->p + s->n; /* it is whole */

	for (size_t i = 0; i < word[0].n; i++)
		h->odd |= !is_token(word[0].p[i]);
	if ((third && is_version(word[2])) || (nl && n > 1 && is_version(last)) ||
	    (nl && n == 2 && is_bare(word[0], word[1])) ||
	    (n > 1 && word[0].n == 3 && memcmp(word[0].p, "GET", 3) == 0))
		return HELLO_HTTP;
	h->like = n > 0 && is_in_use(*s) ? HELLO_HTTP : HELLO_OTHER;
	return nl ? HELLO_OTHER : HELLO_MORE;
}

/* Empty lines before a request are skipped, as servers do (RFC 9112, 2.2); other white space only
 * some skip. */
static bool has_odd_start(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] != (i % 2 ? '\n' : '\r'))
			return true;
	return n % 2;
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

static void read_line(struct hello *h, struct span s)
{
	const char *target = memchr(s.p, ' ', s.n);
	const char *version = target ? memrchr(s.p, ' ', s.n) : NULL;

	if (s.n >= 4 && memcmp(s.p, "PRI ", 4) == 0) {
		say_bad(h, "HTTP/2 without TLS does not show whom it is for");
		return;
	}
	if (!target || version <= target + 1 || s.p + s.n - version != 9 ||
	    memcmp(version, " HTTP/1.", 8) != 0) {
		say_bad(h, "its first line is not of HTTP/1");
		return;
	}
	for (const char *p = s.p; p < target; p++)
		if (!is_token(*p))
			say_bad(h, "its method can be read in two ways");
	if (h->kind != HELLO_BAD)
		read_target(h, (struct span){ target + 1, (size_t)(version - target - 1) },
			    target - s.p == 7 && memcmp(s.p, "CONNECT", 7) == 0);
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

	*ret = (struct hello){ .kind = HELLO_MORE, .like = HELLO_OTHER };
	ret->kind = kind_of(&rest, ret);
	if (ret->kind != HELLO_HTTP)
		return;
	ret->kind = HELLO_MORE;
	ret->like = HELLO_HTTP;
	if (has_odd_start((const char *)p, (size_t)(rest.p - (const char *)p)))
		say_bad(ret, "it has white space before its first line");
	if (ret->kind == HELLO_BAD || !next_line(&rest, &line, ret))
		return;
	if (ret->kind != HELLO_BAD)
		read_line(ret, line);
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
		ret->kind = ret->odd && ret->like == HELLO_OTHER ? HELLO_OTHER : HELLO_BAD;
		ret->why = "its head is too large to be looked at";
	}
}
