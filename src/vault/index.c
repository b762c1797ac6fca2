/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index.c - The address of a package index: checked, split, and without its credentials.
 *
 * The address goes into arguments of programs, into JSON and into messages, so credentials leave it
 * first, and every other part has known characters only. No message has a part of the credentials.
 */
#include "vault/index.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"

/* Where an index without a name is found in cells. Below .internal, which is nobody's in the public
 * DNS. */
static const char *const aliases[INDEX_KINDS] = {
	[INDEX_PIP] = "pip.caisson.internal", [INDEX_NPM] = "npm.caisson.internal"
};

static const char *const names[INDEX_KINDS][INDEX_KEYS] = {
	[INDEX_PIP] = { "CAISSON_PIP_USER", "CAISSON_PIP_PASSWORD", "CAISSON_PIP_TOKEN" },
	[INDEX_NPM] = { "CAISSON_NPM_USER", "CAISSON_NPM_PASSWORD", "CAISSON_NPM_TOKEN" },
};

const char *index_key_name(enum index_kind kind, enum index_key key)
{
	return names[kind][key];
}

bool index_key_reserved(const char *name)
{
	for (size_t i = 0; i < INDEX_KINDS; i++)
		for (size_t k = 0; k < INDEX_KEYS; k++)
			if (strcmp(name, names[i][k]) == 0)
				return true;
	return false;
}

bool index_keys_any(const struct index_keys *k)
{
	return k->value[INDEX_USER][0] || k->value[INDEX_PASSWORD][0] || k->value[INDEX_TOKEN][0];
}

void index_keys_wipe(struct index_keys *k)
{
	explicit_bzero(k, sizeof(*k));
}

/* ---- credentials --------------------------------------------------------------------------- */

/* "%40" is '@'. */
static int decode(const char *s, size_t len, char ret[INDEX_KEY_MAX], struct err *e)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		int byte = hex_escape(s + i, len - i), c = byte < 0 ? (unsigned char)s[i] : byte;

		i += byte < 0 ? 0 : 2;
		if (c == '\0' || n + 1 >= INDEX_KEY_MAX)
			return err_say(
				e, -EINVAL,
				"its user or password has a NUL byte, or more than %u bytes: "
				"give the index other credentials",
				INDEX_KEY_MAX - 1);
		ret[n++] = (char)c;
	}
	ret[n] = '\0';
	return 0;
}

static int take_keys(const char *s, size_t len, struct index_keys *keys, struct err *e)
{
	const char *colon = memchr(s, ':', len);
	size_t user = colon ? (size_t)(colon - s) : len;

	if (!keys)
		return err_say(e, -EINVAL,
			       "it has credentials, which this program must not know: start the "
			       "daemon with 'caisson serve', which takes them out");
	if (decode(s, user, keys->value[INDEX_USER], e) < 0)
		return -EINVAL;
	return colon ? decode(colon + 1, len - user - 1, keys->value[INDEX_PASSWORD], e) : 0;
}

/* It would end a line of the vault, and begin another one. */
static bool has_control(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return true;
	return false;
}

int index_keys_lines(enum index_kind kind, const struct index_url *u, const struct index_keys *k,
		     struct buf *out, struct err *e)
{
	if (!index_keys_any(k))
		return 0;
	if (!u->secure)
		return err_say(e, -EINVAL,
			       "%s has credentials and is not encrypted, so everybody on the way "
			       "could read them: use https, or leave the credentials out",
			       u->url);
	for (size_t i = 0; i < INDEX_KEYS; i++)
		if (has_control(k->value[i]))
			return err_say(e, -EINVAL,
				       "the credentials of %s have a control byte, which no header "
				       "can have: give the index others",
				       u->url);
	for (size_t i = 0; i < INDEX_KEYS; i++)
		if (k->value[i][0])
			(void)buf_printf(out, "%s@%s=%s\n", names[kind][i], u->name, k->value[i]);
	return out->err ? err_set(e, out->err, "keep credentials of an index") : 0;
}

/* ---- the address --------------------------------------------------------------------------- */

static bool is_localhost(const char *host)
{
	static const char below[] = ".localhost";
	size_t n = strlen(host), tail = sizeof(below) - 1;

	return strcmp(host, below + 1) == 0 || (n > tail && strcmp(host + n - tail, below) == 0);
}

bool index_is_loopback(const struct index_url *u)
{
	return is_localhost(u->host) || strcmp(u->host, "::1") == 0 ||
	       (u->is_address && strncmp(u->host, "127.", 4) == 0);
}

/* A name whose last label is a number is an address in a spelling that not everybody reads alike.
 */
static bool is_name(const char *host)
{
	const char *last = strrchr(host, '.');

	last = last ? last + 1 : host;
	return vault_host(host, strlen(host)) && strspn(last, "0123456789") != strlen(last);
}

static int take_host(enum index_kind kind, const char *s, size_t len, struct index_url *ret,
		     struct err *e)
{
	unsigned char raw[16];

	if (len > 1 && s[len - 1] == '.')
		len--;
	if (len == 0 || len >= sizeof(ret->host))
		return err_say(e, -EINVAL, "it names no host; as in https://pypi.org/simple");
	for (size_t i = 0; i < len; i++)
		ret->host[i] = (char)(s[i] >= 'A' && s[i] <= 'Z' ? s[i] - 'A' + 'a' : s[i]);
	ret->host[len] = '\0';
	ret->is_address = is_localhost(ret->host) || inet_pton(AF_INET, ret->host, raw) == 1 ||
			  inet_pton(AF_INET6, ret->host, raw) == 1;
	if (!ret->is_address && !is_name(ret->host))
		return err_say(e, -EINVAL, "'%.64s' is neither the name of a host nor an address",
			       ret->host);
	(void)snprintf(ret->name, sizeof(ret->name), "%s",
		       ret->is_address ? aliases[kind] : ret->host);
	return 0;
}

/* "host:8443", "[fd00::1]:8443". */
static int take_place(enum index_kind kind, const char *s, size_t len, struct index_url *ret,
		      struct err *e)
{
	const char *end = len > 0 && s[0] == '[' ? memchr(s, ']', len) : NULL;
	size_t host = end ? (size_t)(end - s) + 1 : strcspn(s, ":/");
	uint64_t port = ret->secure ? 443 : 80;
	char text[8] = "";

	if (host > len)
		host = len;
	if (host < len) {
		(void)snprintf(text, sizeof(text), "%.*s", (int)(len - host - 1), s + host + 1);
		if (s[host] != ':' || len - host > 6 ||
		    num_parse_u64(text, 1, UINT16_MAX, &port, NULL) < 0)
			return err_say(e, -EINVAL,
				       "after its host a port from 1 to 65535 must follow");
	}
	ret->port = (uint16_t)port;
	if (end && !memchr(s, ':', host))
		return err_say(e, -EINVAL, "it has no address between its brackets");
	return end ? take_host(kind, s + 1, host - 2, ret, e) : take_host(kind, s, host, ret, e);
}

/* It goes into arguments of programs and into JSON as it is. */
static bool is_path(const char *s)
{
	return strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/%+:@"
			 "!$&'()*,;=") == strlen(s);
}

int index_url_parse(enum index_kind kind, const char *text, struct index_url *ret,
		    struct index_keys *keys, struct err *e)
{
	bool secure = strncmp(text, "https://", 8) == 0;
	size_t skip = secure ? 8 : strncmp(text, "http://", 7) == 0 ? 7 : 0;
	const char *place = text + skip;
	size_t len = strcspn(place, "/?#");
	const char *at = memrchr(place, '@', len), *path = place + len;

	*ret = (struct index_url){ .secure = secure };
	if (!skip)
		return err_say(
			e, -EINVAL,
			"it is not the address of an index, which begins with https://, as in "
			"%s; without it, the index of this machine's %s is used",
			kind == INDEX_PIP ? "https://pypi.org/simple" :
					    "https://registry.npmjs.org",
			kind == INDEX_PIP ? "pip" : "npm");
	if (!is_path(path))
		return err_say(e, -EINVAL,
			       "it has a query, or a byte that no path of an index has");
	if (at && take_keys(place, (size_t)(at - place), keys, e) < 0)
		return -EINVAL;
	if (at) {
		len -= (size_t)(at + 1 - place);
		place = at + 1;
	}
	if (len + strlen(path) >= INDEX_URL_MAX / 2)
		return err_say(e, -EINVAL, "it is longer than %u bytes", INDEX_URL_MAX / 2);
	if (take_place(kind, place, len, ret, e) < 0)
		return -EINVAL;
	(void)snprintf(ret->url, sizeof(ret->url), "%.*s%.*s%s", (int)skip, text, (int)len, place,
		       path);
	if (ret->is_address)
		(void)snprintf(ret->inside, sizeof(ret->inside), "%.*s%s:%u%s", (int)skip, text,
			       ret->name, ret->port, path);
	else
		memcpy(ret->inside, ret->url, sizeof(ret->inside));
	return 0;
}
