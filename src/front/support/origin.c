/* SPDX-License-Identifier: Apache-2.0 */
/* origin.c - Host headers and web origins, taken apart and compared. */
#include "front/support/origin.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <string.h>

#include "base/num.h"

static bool is_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool parse_port(const char *text, unsigned int *ret)
{
	uint64_t v;

	if (strlen(text) > 5 || num_parse_u64(text, 1, 65535, &v, NULL) < 0)
		return false;
	*ret = (unsigned int)v;
	return true;
}

/* An address in its canonical spelling. */
static bool set_address(int family, const char *text, struct origin *o)
{
	static const unsigned char zero[16];
	unsigned char raw[16];

	if (inet_pton(family, text, raw) != 1 ||
	    !inet_ntop(family, raw, o->host, (socklen_t)sizeof(o->host)))
		return false;
	o->is_address = true;
	o->is_any = memcmp(raw, zero, family == AF_INET ? 4 : 16) == 0;
	return true;
}

/* Letters, digits, '-' and '_' in labels of 1 to 63. */
static bool set_name(const char *text, size_t len, struct origin *o)
{
	size_t label = 0;

	if (len == 0 || len >= sizeof(o->host))
		return false;
	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		if (c == '.' ? label == 0 : !is_alnum(c) && c != '-' && c != '_')
			return false;
		label = c == '.' ? 0 : label + 1;
		if (label > 63)
			return false;
		o->host[i] = lower(c);
	}
	o->host[len] = '\0';
	return label > 0;
}

bool origin_parse_host(const char *text, struct origin *ret)
{
	struct origin o = { 0 };
	char host[ORIGIN_HOST_MAX + 1];
	bool v6 = text[0] == '[';
	size_t len = v6 ? strcspn(++text, "]") : strcspn(text, ":");
	const char *rest = text + len;

	if (len == 0 || len >= sizeof(host) || (v6 && *rest++ != ']'))
		return false;
	/* One final dot is the same name, and the same address to a browser. */
	if (!v6 && len > 1 && text[len - 1] == '.')
		len--;
	memcpy(host, text, len);
	host[len] = '\0';
	if (v6 ? !set_address(AF_INET6, host, &o) :
		 !set_address(AF_INET, host, &o) && !set_name(host, len, &o))
		return false;
	if (*rest && (*rest != ':' || !parse_port(rest + 1, &o.port)))
		return false;
	*ret = o;
	return true;
}

static unsigned int default_port(const char *scheme)
{
	if (strcmp(scheme, "http") == 0)
		return 80;
	return strcmp(scheme, "https") == 0 ? 443 : 0;
}

bool origin_parse(const char *text, struct origin *ret)
{
	const char *sep = strstr(text, "://");
	struct origin o;

	if (!sep || sep == text || (size_t)(sep - text) >= sizeof(o.scheme) ||
	    !origin_parse_host(sep + 3, &o))
		return false;
	for (size_t i = 0; text + i < sep; i++) {
		char c = text[i];

		if (!is_alnum(c) && (i == 0 || (c != '+' && c != '-' && c != '.')))
			return false;
		o.scheme[i] = lower(c);
	}
	o.scheme[sep - text] = '\0';
	if (o.port == 0)
		o.port = default_port(o.scheme);
	*ret = o;
	return true;
}

bool origin_same_host(const struct origin *a, const struct origin *b)
{
	return strcmp(a->host, b->host) == 0;
}

bool origin_equal(const struct origin *a, const struct origin *b)
{
	return strcmp(a->scheme, b->scheme) == 0 && origin_same_host(a, b) && a->port == b->port;
}

bool origin_matches_host(const struct origin *o, const struct origin *host)
{
	unsigned int port = default_port(o->scheme);

	return port != 0 && origin_same_host(o, host) &&
	       o->port == (host->port ? host->port : port);
}
