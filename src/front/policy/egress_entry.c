/* SPDX-License-Identifier: Apache-2.0 */
/*
 * egress_entry.c - From an entry of `egress` as people write it to rules of the gate.
 *
 * The methods before the host and the path behind it are taken off first; then the port, and the
 * rest is the host. Each check has its own message with the remedy.
 */
#include "front/policy/egress_entry.h"

#include <errno.h>
#include <idn2.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "wire/init.h"

#define LABEL_MAX 63
#define DNS_PORT 53

static bool is_label_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* ---- requests ------------------------------------------------------------------------------ */

static bool is_method(const char *s, size_t len)
{
	static const char *const known[] = { "GET",   "HEAD",   "POST",   "PUT",
					     "PATCH", "DELETE", "OPTIONS" };

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (strlen(known[i]) == len && memcmp(known[i], s, len) == 0)
			return true;
	return false;
}

/* Single commas between them; upper case afterwards. Only usual methods: others are mostly typing
 * errors. */
static int take_methods(const char *s, size_t len, char *ret, struct err *e)
{
	bool good = len < GATE_METHODS_MAX;

	for (size_t i = 0; good && i < len; i++)
		ret[i] = (char)(s[i] >= 'a' && s[i] <= 'z' ? s[i] - 'a' + 'A' : s[i]);
	for (size_t at = 0, n; good && at <= len; at += n + 1) {
		const char *comma = memchr(ret + at, ',', len - at);

		n = comma ? (size_t)(comma - ret) - at : len - at;
		good = is_method(ret + at, n);
	}
	return good ? 0 :
		      err_say(e, -EINVAL,
			      "'%.*s': before the host come methods, with commas between, as in "
			      "GET,POST api.example.com/v1/*",
			      (int)(len < 80 ? len : 80), s);
}

static const char *path_problem(const char *s, size_t len)
{
	if (len >= GATE_PATH_MAX)
		return "is too long";
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)s[i] <= ' ' || (unsigned char)s[i] >= 0x7f)
			return "has a byte that is not printable ASCII";
		if (strchr("?#\\%", s[i]))
			return "is compared decoded and without a query: write it without ?, #, % "
			       "and \\";
		if (s[i] == '/' && i + 1 < len && s[i + 1] == '/')
			return "has an empty segment";
		size_t dots = 0;

		while (s[i] == '/' && i + 1 + dots < len && s[i + 1 + dots] == '.')
			dots++;
		if ((dots == 1 || dots == 2) && (i + 1 + dots == len || s[i + 1 + dots] == '/'))
			return "has a segment '.' or '..'";
	}
	return NULL;
}

/* Take methods and path off. @text, @len become the host and its port. */
static int take_request(const char **text, size_t *len, struct http_entry *ret, struct err *e)
{
	const char *space = memchr(*text, ' ', *len);

	*ret = (struct http_entry){ .path = "" };
	if (memmem(*text, *len, "://", 3))
		return 0; /* a URL, which is refused as such */
	if (space) {
		size_t n = (size_t)(space - *text);

		if (take_methods(*text, n, ret->methods, e) < 0)
			return -EINVAL;
		*text += n + 1;
		*len -= n + 1;
	}
	const char *slash = memchr(*text, '/', *len);

	if (!slash)
		return 0;
	size_t n = *len - (size_t)(slash - *text);
	const char *problem = path_problem(slash, n);

	if (problem)
		return err_say(e, -EINVAL, "the path in '%.*s' %s", (int)(*len < 200 ? *len : 200),
			       *text, problem);
	memcpy(ret->path, slash, n);
	ret->path[n] = '\0';
	*len -= n;
	return 0;
}

/* ---- hosts --------------------------------------------------------------------------------- */

/* Texts that cannot be a host name. */
static int check_bytes(const char *text, size_t len, struct err *e)
{
	if (len == 0)
		return err_say(e, -EINVAL, "an entry is empty; write a host name");
	if (len >= 4 * EGRESS_NAME_MAX)
		return err_say(e, -EINVAL, "an entry is too long for a host name");
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] <= ' ' || text[i] == 0x7f)
			return err_say(e, -EINVAL,
				       "an entry has a space or a control byte in it; write the "
				       "host name alone");
	if (memmem(text, len, "://", 3) || memchr(text, '/', len))
		return err_say(e, -EINVAL,
			       "'%.*s' is a URL or a range; write the host name alone, as in "
			       "api.example.com",
			       (int)len, text);
	if (memchr(text, '@', len) || memchr(text, '[', len))
		return err_say(e, -EINVAL,
			       "'%.*s': write the host name alone, and HOST:PORT for a port",
			       (int)len, text);
	return 0;
}

/* Take off the number after the last colon. */
static int take_port(const char *text, size_t *len, uint16_t *ret, struct err *e)
{
	const char *colon = memrchr(text, ':', *len);
	size_t at = colon ? (size_t)(colon - text) : *len;
	unsigned int port = 0;

	*ret = 0;
	if (!colon)
		return 0;
	for (size_t i = at + 1; i < *len && port <= 65535; i++)
		port = is_digit(text[i]) ? port * 10 + (unsigned int)(text[i] - '0') : 65536;
	if (port == 0 || port > 65535 || text[at + 1] == '0' || memchr(text, ':', at))
		return err_say(e, -EINVAL,
			       "'%.*s': a port is a number from 1 to 65535, and addresses are not "
			       "taken: egress is by name",
			       (int)*len, text);
	if (port == DNS_PORT)
		return err_say(e, -EINVAL, "'%.*s': port 53 is that of the sandbox's own resolver",
			       (int)*len, text);
	if (port == INIT_TOOLS_PORT)
		return err_say(e, -EINVAL,
			       "'%.*s': on that port the sandbox's own programs request packages",
			       (int)*len, text);
	*ret = (uint16_t)port;
	*len = at;
	return 0;
}

/* Lower case; a name that is not ASCII becomes its A-labels. */
static int to_ascii(const char *text, size_t len, char ret[GATE_HOST_MAX], struct err *e)
{
	char utf8[4 * EGRESS_NAME_MAX];
	bool ascii = true;
	char *out = NULL;

	memcpy(utf8, text, len);
	utf8[len] = '\0';
	for (size_t i = 0; i < len; i++)
		ascii = ascii && !(text[i] & 0x80);
	if (ascii) {
		if (len >= GATE_HOST_MAX)
			return err_say(e, -EINVAL, "'%.64s...' is too long for a host name", utf8);
		for (size_t i = 0; i <= len; i++)
			ret[i] = (char)(utf8[i] >= 'A' && utf8[i] <= 'Z' ? utf8[i] - 'A' + 'a' :
									   utf8[i]);
		return 0;
	}
	int r = idn2_to_ascii_8z(utf8, &out,
				 IDN2_NFC_INPUT | IDN2_NONTRANSITIONAL | IDN2_USE_STD3_ASCII_RULES);

	if (r != IDN2_OK)
		return err_say(e, -EINVAL, "'%.200s' is not a host name: %s", utf8,
			       idn2_strerror(r));
	bool fits = strlen(out) < GATE_HOST_MAX;

	(void)snprintf(ret, GATE_HOST_MAX, "%s", out);
	idn2_free(out);
	return fits ? 0 : err_say(e, -EINVAL, "'%.64s...' is too long for a host name", utf8);
}

static int check_labels(const char *host, bool wild, struct err *e)
{
	size_t label = 0, labels = 1;
	bool numeric = true;

	for (const char *p = host; *p; p++) {
		if (*p == '.') {
			if (label == 0)
				return err_say(e, -EINVAL, "'%s' has an empty label", host);
			label = 0;
			labels++;
			numeric = true;
			continue;
		}
		if (*p == '*')
			return err_say(e, -EINVAL,
				       "'%s': a wildcard stands in front of a name alone, as in "
				       "*.example.org",
				       host);
		if (!is_label_byte(*p) || ++label > LABEL_MAX)
			return err_say(e, -EINVAL, "'%s' is not a host name", host);
		numeric = numeric && is_digit(*p);
	}
	if (label == 0)
		return err_say(e, -EINVAL, "'%s' has an empty label", host);
	/* No top-level domain is a number: 10.0.0.1, 127.1, 2130706433. Nor one in hexadecimal. */
	const char *last = strrchr(host, '.');

	last = last ? last + 1 : host;
	if (numeric || (last[0] == '0' && last[1] == 'x'))
		return err_say(e, -EINVAL, "'%s' is an address; egress is by name", host);
	if (wild && labels < 2)
		return err_say(e, -EINVAL,
			       "'*.%s' would be a whole top-level domain; name at least two "
			       "labels, as in *.example.%s",
			       host, host);
	return 0;
}

/* By RFC 6761 localhost, and every name below it, is the machine itself: in a sandbox, the sandbox.
 */
static int check_not_self(const char *host, struct err *e)
{
	static const char self[] = ".localhost";
	size_t n = strlen(host);

	if (strcmp(host, self + 1) != 0 &&
	    (n < sizeof(self) - 1 || strcmp(host + n - (sizeof(self) - 1), self) != 0))
		return 0;
	return err_say(e, -EINVAL,
		       "'%s' is the sandbox itself and never the host's machine; give the service "
		       "there a name of its own, and its address to --egress-private",
		       host);
}

int egress_entry_parse(const char *text, size_t len, struct egress_entry *ret, struct err *e)
{
	*ret = (struct egress_entry){ 0 };
	if (take_request(&text, &len, &ret->http, e) < 0 || check_bytes(text, len, e) < 0 ||
	    take_port(text, &len, &ret->port, e) < 0)
		return -EINVAL;
	if (len == 1 && text[0] == '*')
		return err_say(
			e, -EINVAL,
			"'*' would be everything; name hosts, or a domain as in *.example.org");
	if (len > 2 && text[0] == '*' && text[1] == '.') {
		ret->wild = true;
		text += 2;
		len -= 2;
	}
	if (len > 1 && text[len - 1] == '.')
		len--;
	if (len == 0)
		return err_say(e, -EINVAL, "an entry has no host name");
	if (to_ascii(text, len, ret->host, e) < 0 || check_not_self(ret->host, e) < 0 ||
	    check_labels(ret->host, ret->wild, e) < 0)
		return -EINVAL;
	const struct http_entry *h = &ret->http;
	int n = snprintf(ret->text, sizeof(ret->text), "%s%s%s%s", h->methods,
			 h->methods[0] ? " " : "", ret->wild ? "*." : "", ret->host);

	if (ret->port)
		n += snprintf(ret->text + n, sizeof(ret->text) - (size_t)n, ":%u", ret->port);
	(void)snprintf(ret->text + n, sizeof(ret->text) - (size_t)n, "%s", h->path);
	return 0;
}

size_t egress_entry_rules(const struct egress_entry *n, struct gate_rule ret[2])
{
	static const uint16_t usual[2] = { 80, 443 };
	size_t count = n->port ? 1 : 2;

	for (size_t i = 0; i < count; i++) {
		ret[i] = (struct gate_rule){ .port = n->port ? n->port : usual[i],
					     .flags = n->wild ? GATE_WILD : 0 };
		memcpy(ret[i].host, n->host, sizeof(ret[i].host));
		memcpy(ret[i].methods, n->http.methods, sizeof(ret[i].methods));
		memcpy(ret[i].path, n->http.path, sizeof(ret[i].path));
	}
	return count;
}
