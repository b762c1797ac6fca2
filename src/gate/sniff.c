/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sniff.c - The protocol of a connection and the host that it names, from its first bytes.
 *
 * Theory of operation. About HTTP there are two questions, with opposite errors. Is it HTTP? Here
 * the most lenient server counts: white space of any kind before the first line and between its
 * words, any first word, "HTTP/" in front of the third word or the last one, or no version at all.
 * Which host is it for? Here the strictest reading counts: the same scanner that checks every
 * request (net/prescan.h) refuses a head that servers read in different ways (two hosts, folded
 * lines, bare CR, control bytes).
 *
 * Another protocol may begin with words too, and wait for an answer before its line ends. So an
 * incomplete line is SNIFF_MORE, and sniff.like is SNIFF_HTTP if it begins with a method that is in
 * use, else SNIFF_OTHER.
 */
#include "gate/sniff.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/fd.h"
#include "net/http_header.h"
#include "net/prescan.h"
#include "net/target.h"

/* h->like is set already. */
static void set_bad(struct sniff *h, const char *why)
{
	h->kind = SNIFF_BAD;
	h->why = why;
}

/* ---- the server name of a TLS ClientHello --------------------------------------------------- */

/*
 * A ClientHello may come in several records, whose payloads are put together first. Every length is
 * checked against the rest of the vector around it.
 */
#define RECORD_HANDSHAKE 22
#define RECORD_HEADER 5u
#define RECORD_MAX 16384u
#define CLIENT_HELLO 1
#define EXT_SERVER_NAME 0
#define NAME_DNS 0

/* A part of the message. */
struct view {
	const uint8_t *p;
	size_t left;
	bool bad;
};

static unsigned int take(struct view *v, unsigned int bytes)
{
	unsigned int n = 0;

	if (v->left < bytes) {
		v->bad = true;
		v->left = 0;
		return 0;
	}
	for (; bytes > 0; bytes--, v->left--)
		n = n << 8 | *v->p++;
	return n;
}

/* A vector with its length in so many bytes. */
static struct view take_vector(struct view *v, unsigned int bytes)
{
	size_t len = take(v, bytes);
	struct view in = { .p = v->p, .left = len };

	if (v->bad || v->left < len) {
		v->bad = true;
		v->left = 0;
		return (struct view){ .bad = true };
	}
	v->p += len;
	v->left -= len;
	return in;
}

static void read_name(struct view ext, struct sniff *h)
{
	struct view list = take_vector(&ext, 2);
	unsigned int type = take(&list, 1);
	struct view name = take_vector(&list, 2);

	if (ext.bad || list.bad || name.bad || type != NAME_DNS || list.left > 0 || ext.left > 0 ||
	    name.left == 0 || name.left >= sizeof(h->host)) {
		set_bad(h, "its server name cannot be read");
		return;
	}
	for (size_t i = 0; i < name.left; i++) {
		uint8_t c = name.p[i];

		if (c <= ' ' || c >= 0x7f) {
			set_bad(h, "its server name has invalid bytes");
			return;
		}
		h->host[i] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
	}
	h->host[name.left] = '\0';
}

static void read_hello(struct view v, struct sniff *h)
{
	bool named = false;

	h->kind = SNIFF_TLS;
	(void)take(&v, 2); /* version */
	for (int i = 0; i < 32; i++)
		(void)take(&v, 1); /* random */
	(void)take_vector(&v, 1);  /* session */
	(void)take_vector(&v, 2);  /* ciphers */
	(void)take_vector(&v, 1);  /* compression */
	if (v.left == 0 && !v.bad)
		return; /* without extensions */
	struct view exts = take_vector(&v, 2);

	while (exts.left > 0 && h->kind == SNIFF_TLS) {
		unsigned int type = take(&exts, 2);
		struct view ext = take_vector(&exts, 2);

		if (exts.bad || type != EXT_SERVER_NAME)
			continue;
		if (named)
			set_bad(h, "it names the server twice");
		else
			read_name(ext, h);
		named = true;
	}
	if (v.bad || exts.bad)
		set_bad(h, "its first message cannot be read");
}

static void sniff_tls(const uint8_t *p, size_t len, struct sniff *ret)
{
	static uint8_t whole[SNIFF_MAX];
	size_t have = 0, want = 4;

	*ret = (struct sniff){ .kind = SNIFF_MORE, .like = SNIFF_TLS };
	while (len > 0) {
		if (p[0] != RECORD_HANDSHAKE || (len > 1 && p[1] != 3)) {
			set_bad(ret, "other records interrupt its first message");
			return;
		}
		if (len < RECORD_HEADER)
			return;
		size_t n = (size_t)(p[3] << 8 | p[4]);
		size_t here = n < len - RECORD_HEADER ? n : len - RECORD_HEADER;

		if (n == 0 || n > RECORD_MAX || have + here > sizeof(whole)) {
			set_bad(ret, "its first message is too large, or empty");
			return;
		}
		memcpy(whole + have, p + RECORD_HEADER, here);
		have += here;
		if (whole[0] != CLIENT_HELLO) {
			set_bad(ret, "it does not begin with a ClientHello");
			return;
		}
		if (have >= 4)
			want = 4 + ((size_t)whole[1] << 16 | (size_t)whole[2] << 8 | whole[3]);
		if (want > sizeof(whole)) {
			set_bad(ret, "its first message is too large");
			return;
		}
		if (have >= want) {
			read_hello((struct view){ .p = whole + 4, .left = want - 4 }, ret);
			return;
		}
		if (here < n)
			return;
		p += RECORD_HEADER + n;
		len -= RECORD_HEADER + n;
	}
}

/* ---- the host of a first HTTP/1 request ------------------------------------------------------ */

static const char *const methods[] = { "GET ",     "POST ",  "PUT ",     "HEAD ",  "DELETE ",
				       "OPTIONS ", "PATCH ", "CONNECT ", "TRACE ", "PRI " };

struct span {
	const char *p;
	size_t n;
};

/* White space to some server: of C's isspace(), and of Python's str.split() on ISO 8859-1. */
static bool is_blank(char c)
{
	unsigned char b = (unsigned char)c;

	return b == ' ' || (b >= '\t' && b <= '\r') || (b >= 0x1c && b <= 0x1f) || b == 0x85 ||
	       b == 0xa0;
}

/* Whether the bytes begin with a method that is in use, or are the beginning of one. */
static bool is_in_use(struct span s)
{
	for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
		size_t len = strlen(methods[i]);

		if (memcmp(s.p, methods[i], s.n < len ? s.n : len) == 0)
			return true;
	}
	return false;
}

/* Parsers of several protocols accept the versions of all of them. */
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

/* The first three words of a line and the last one. Return: the number of words. */
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

/* A method and a target, as in HTTP/0.9; some servers read headers after it. */
static bool is_bare(struct span method, struct span target)
{
	for (size_t i = 0; i < method.n; i++)
		if (!(method.p[i] >= 'A' && method.p[i] <= 'Z') && !strchr("-_", method.p[i]))
			return false;
	return target.p[0] == '/' || target.p[0] == '*' || memmem(target.p, target.n, "://", 3);
}

/*
 * Whether the bytes begin a request: SNIFF_HTTP, SNIFF_OTHER, or SNIFF_MORE.
 * @s: loses the white space at its beginning
 */
static enum sniff_kind kind_of(struct span *s, struct sniff *h)
{
	struct span word[3] = { 0 }, last = { 0 };

	while (s->n > 0 && is_blank(s->p[0]))
		s->p++, s->n--;
	const char *nl = s->n > 0 ? memchr(s->p, '\n', s->n) : NULL;
	size_t n = split((struct span){ s->p, nl ? (size_t)(nl - s->p) : s->n }, word, &last);

	bool third = n > 2 && word[2].p + word[2].n < s->p + s->n; /* it is whole */

	for (size_t i = 0; i < word[0].n; i++)
		h->odd |= !header_is_tchar((unsigned char)word[0].p[i]);
	if ((third && is_version(word[2])) || (nl && n > 1 && is_version(last)) ||
	    (nl && n == 2 && is_bare(word[0], word[1])) ||
	    (n > 1 && word[0].n == 3 && memcmp(word[0].p, "GET", 3) == 0))
		return SNIFF_HTTP;
	h->like = n > 0 && is_in_use(*s) ? SNIFF_HTTP : SNIFF_OTHER;
	return nl ? SNIFF_OTHER : SNIFF_MORE;
}

/* "host", "host:port", "[v6]:port". False: of another form. */
static bool take_authority(struct sniff *h, const char *p, size_t n)
{
	const char *colon = memrchr(p, ':', n);
	size_t host = colon && !memchr(colon, ']', n - (size_t)(colon - p)) ? (size_t)(colon - p) :
									      n;

	if (!host_valid(p, n) || host >= sizeof(h->host))
		return false;
	for (size_t i = 0; i < host; i++)
		h->host[i] = (char)tolower((unsigned char)p[i]);
	h->host[host] = '\0';
	h->port = host < n ? (uint16_t)strtoul(colon + 1, NULL, 10) : 0;
	return true;
}

/* The value of Host in a head that the prescan accepted, so its lines end with CR LF. False: the
 * head has no Host. */
static bool find_host(const char *p, const char *end, struct span *ret)
{
	while ((p = memchr(p, '\n', (size_t)(end - p))) && end - ++p > 5)
		if (strncasecmp(p, "host:", 5) == 0) {
			for (p += 5; *p == ' ' || *p == '\t';)
				p++;
			*ret = (struct span){ p, 0 };
			while (p[ret->n] != '\r')
				ret->n++;
			while (ret->n > 0 && (p[ret->n - 1] == ' ' || p[ret->n - 1] == '\t'))
				ret->n--;
			return true;
		}
	return false;
}

/* The host of a head that the prescan accepted: of its target, and of its Host header. */
static void read_host(const struct prescan *scan, const char *head, struct sniff *h)
{
	const char *end = head + scan->head_len, *why = NULL;
	const char *line = head + scan->skipped, *target;
	struct sniff of_target = { 0 };
	struct target t;
	struct span host;

	target = (const char *)memchr(line, ' ', (size_t)(end - line)) + 1;
	if (target_split(target, scan->target_len, &t, &why) < 0)
		set_bad(h, why);
	else if (t.authority && !take_authority(&of_target, t.authority, t.authority_len))
		set_bad(h, "the host of its target cannot be read");
	else if (find_host(line, end, &host) && !take_authority(h, host.p, host.n))
		set_bad(h, "its Host header cannot be read");
	else if (of_target.host[0] && h->host[0] &&
		 (strcmp(of_target.host, h->host) != 0 || of_target.port != h->port))
		set_bad(h, "its target and its Host header name different hosts");
	else if (of_target.host[0]) {
		memcpy(h->host, of_target.host, sizeof(h->host));
		h->port = of_target.port;
	}
}

static void sniff_http(const uint8_t *p, size_t len, struct sniff *ret)
{
	struct span rest = { (const char *)p, len };
	struct prescan scan;
	size_t used;

	*ret = (struct sniff){ .kind = SNIFF_MORE, .like = SNIFF_OTHER };
	ret->kind = kind_of(&rest, ret);
	if (ret->kind != SNIFF_HTTP)
		return;
	ret->like = SNIFF_HTTP;
	prescan_init(&scan, SNIFF_MAX, SNIFF_MAX);
	switch (prescan_feed(&scan, (const char *)p, len, &used)) {
	case PRESCAN_MORE:
		ret->kind = SNIFF_MORE;
		break;
	case PRESCAN_BAD:
		set_bad(ret, scan.message);
		break;
	case PRESCAN_DONE:
		read_host(&scan, (const char *)p, ret);
		break;
	}
}

/* ---- both ----------------------------------------------------------------------------------- */

enum sniff_kind sniff_like(const struct sniff *h)
{
	return h->kind == SNIFF_BAD || h->kind == SNIFF_MORE ? h->like : h->kind;
}

void sniff_bytes(const uint8_t *p, size_t len, struct sniff *ret)
{
	*ret = (struct sniff){ .kind = SNIFF_MORE, .like = SNIFF_OTHER };
	if (len == 0)
		return;
	if (p[0] == 22 && len == 1)
		ret->like = SNIFF_TLS;
	else if (p[0] == 22 && p[1] == 3)
		sniff_tls(p, len, ret);
	else
		sniff_http(p, len, ret);
	if (ret->kind == SNIFF_MORE && len >= SNIFF_MAX) {
		ret->kind = ret->odd && ret->like == SNIFF_OTHER ? SNIFF_OTHER : SNIFF_BAD;
		ret->why = "its head is too large";
	}
}
