/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proxy.c - The host's proxy for outgoing connections (HTTPS_PROXY, NO_PROXY), used with CONNECT.
 *
 * The proxy resolves the names of such connections, so the gate cannot judge their addresses. The
 * gate looks up the name of the proxy for each connection (lookup.h): a proxy that is absent now,
 * or moves, makes these connections fail, and not the daemon's start.
 */
#include "gate/gate.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/err.h"
#include "base/num.h"

#define HEAD_MAX 8192u

/* "host" and "port", where the URL has them. */
static int take_place(const char *host, const char *port, struct proxy *ret, struct err *e)
{
	struct prefix p;
	uint64_t number = 0;

	if (!*host || strlen(host) >= sizeof(ret->host))
		return err_say(e, -EINVAL, "HTTPS_PROXY: it names no host");
	if (num_parse_u64(port, 1, UINT16_MAX, &number, NULL) < 0)
		return err_say(e, -EINVAL, "HTTPS_PROXY: %.200s: no port between 1 and 65535",
			       host);
	memcpy(ret->host, host, strlen(host) + 1);
	ret->port = (uint16_t)number;
	ret->is_address = !strchr(host, '/') && prefix_parse(host, &p);
	if (ret->is_address)
		ret->address = p.net;
	ret->on = true;
	return 0;
}

static int take_user(const char *user, size_t len, struct proxy *ret, struct err *e)
{
	unsigned char text[sizeof(ret->authorization) - 8];

	if (len > sizeof(text) / 4 * 3 - 3)
		return err_say(e, -EINVAL, "HTTPS_PROXY: user and password are too long");
	(void)EVP_EncodeBlock(text, (const unsigned char *)user, (int)len);
	(void)snprintf(ret->authorization, sizeof(ret->authorization), "Basic %s", (char *)text);
	return 0;
}

int proxy_parse(const char *url, const char *no, struct proxy *ret, struct err *e)
{
	char host[256];
	const char *at, *port;
	size_t len;

	*ret = (struct proxy){ 0 };
	if (!url || !*url)
		return 0;
	if (no && (size_t)snprintf(ret->no, sizeof(ret->no), "%s", no) >= sizeof(ret->no))
		return err_say(e, -EINVAL, "NO_PROXY: it is too long");
	if (strncasecmp(url, "http://", 7) == 0)
		url += 7;
	else if (strstr(url, "://"))
		return err_say(e, -EINVAL, "HTTPS_PROXY: only proxies with http:// are supported");
	len = strcspn(url, "/");
	at = memrchr(url, '@', len);
	if (at && take_user(url, (size_t)(at - url), ret, e) < 0)
		return e ? e->code : -EINVAL;
	if (at) {
		len -= (size_t)(at + 1 - url);
		url = at + 1;
	}
	if (len == 0 || len >= sizeof(host))
		return err_say(e, -EINVAL, "HTTPS_PROXY: it names no host");
	memcpy(host, url, len);
	host[len] = '\0';
	char *colon = strrchr(host, ':');

	if (host[0] == '[') { /* [::1]:3128 */
		char *end = strchr(host, ']');

		if (!end)
			return err_say(e, -EINVAL, "HTTPS_PROXY: it names no host");
		*end = '\0';
		port = end[1] == ':' ? end + 2 : "80";
		return take_place(host + 1, port, ret, e);
	}
	if (colon)
		*colon = '\0';
	return take_place(host, colon ? colon + 1 : "80", ret, e);
}

bool proxy_wanted(const struct proxy *p, const char *host)
{
	size_t len = strlen(host);

	if (!p->on)
		return false;
	for (const char *s = p->no; *s; s += strspn(s, ", ")) {
		size_t n = strcspn(s, ", ");
		const char *name = s;

		s += n;
		if (n == 1 && *name == '*')
			return false;
		while (n > 0 && (*name == '.' || *name == '*'))
			name++, n--; /* ".example.com", "*.example.com" */
		if (n > 0 && n <= len && strncasecmp(host + len - n, name, n) == 0 &&
		    (n == len || host[len - n - 1] == '.'))
			return false;
	}
	return true;
}

size_t proxy_request(const struct proxy *p, const char *host, uint16_t port, char *out, size_t size)
{
	bool auth = p->authorization[0];
	int n = snprintf(out, size, "CONNECT %s:%u HTTP/1.1\r\nHost: %s:%u\r\n%s%s%s\r\n", host,
			 port, host, port, auth ? "Proxy-Authorization: " : "", p->authorization,
			 auth ? "\r\n" : "");

	return n > 0 && (size_t)n < size ? (size_t)n : 0;
}

int proxy_answer(const char *p, size_t len)
{
	const char *end = memmem(p, len, "\r\n\r\n", 4);

	if (len >= 12 && memcmp(p, "HTTP/1.", 7) != 0)
		return -EPROTO;
	if (!end)
		return len >= HEAD_MAX ? -EPROTO : 0;
	if (len < 12 || p[8] != ' ')
		return -EPROTO;
	return p[9] == '2' ? (int)(end + 4 - p) : -ECONNREFUSED;
}
