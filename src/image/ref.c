/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ref.c - References are parsed from their end: digest, tag, then registry and name.
 *
 * The order resolves the two meanings of a colon: after the last slash it begins a tag, before the
 * first one it separates the registry's port.
 */
#include "image/ref.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/wild.h"

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"
#define LIBRARY "library/"
#define HEX_LEN 64

/* Each has room for a NUL, which stands for the mark between two. */
_Static_assert(REF_HOST_MAX + REF_NAME_MAX + REF_TAG_MAX + IMAGE_DIGEST_MAX <= IMAGE_REF_MAX,
	       "a canonical reference fits");

static bool only(const char *s, size_t len, const char *of)
{
	return strspn(s, of) >= len;
}

bool ref_digest_ok(const char *text)
{
	return strncmp(text, "sha256:", 7) == 0 && strlen(text + 7) == HEX_LEN &&
	       only(text + 7, HEX_LEN, "0123456789abcdef");
}

/* ---- parts --------------------------------------------------------------------------------- */

/* Letters and digits, and between them one '.', one or two '_', or any number of '-'. */
static bool component_ok(const char *s, size_t len)
{
	size_t i = 0;

	for (;;) {
		size_t from = i;

		while (i < len && strchr(LOWER DIGITS, s[i]))
			i++;
		if (i == from)
			return false;
		if (i == len)
			return true;
		if (s[i] == '.')
			i++;
		else if (s[i] == '_')
			i += i + 1 < len && s[i + 1] == '_' ? 2 : 1;
		else if (s[i] == '-')
			while (i < len && s[i] == '-')
				i++;
		else
			return false;
	}
}

static bool name_ok(const char *s)
{
	for (;;) {
		size_t n = strcspn(s, "/");

		if (!component_ok(s, n))
			return false;
		if (!s[n])
			return true;
		s += n + 1;
	}
}

static bool port_ok(const char *s)
{
	size_t n = strlen(s);

	return n >= 1 && n <= 5 && only(s, n, DIGITS);
}

static bool host_ok(const char *s)
{
	char text[INET6_ADDRSTRLEN];
	struct in6_addr address;
	size_t n;

	if (s[0] == '[') {
		n = strcspn(s, "]");
		if (!s[n] || n >= sizeof(text))
			return false;
		memcpy(text, s + 1, n - 1);
		text[n - 1] = '\0';
		if (inet_pton(AF_INET6, text, &address) != 1)
			return false;
		return !s[n + 1] || (s[n + 1] == ':' && port_ok(s + n + 2));
	}
	n = strcspn(s, ":");
	if (n == 0 || !only(s, n, LOWER DIGITS ".-") || strchr(".-", s[0]) ||
	    strchr(".-", s[n - 1]) || strstr(s, ".."))
		return false;
	return !s[n] || port_ok(s + n + 1);
}

static bool tag_ok(const char *s)
{
	size_t n = strlen(s);

	return n >= 1 && n < REF_TAG_MAX && only(s, n, LOWER UPPER DIGITS "._-") && s[0] != '.' &&
	       s[0] != '-';
}

static void lower(char *s)
{
	for (; *s; s++)
		if (*s >= 'A' && *s <= 'Z')
			*s |= 0x20;
}

/* ---- the whole ----------------------------------------------------------------------------- */

/* Cut "@digest" and ":tag" off @text. */
static int cut_end(char *text, struct ref *ret, struct err *e)
{
	char *at = strchr(text, '@'), *slash, *colon;

	if (at) {
		if (!ref_digest_ok(at + 1))
			return err_say(
				e, -EINVAL,
				"'%.80s' is not a digest: it must be sha256: and 64 hexadecimal "
				"digits in lower case",
				at + 1);
		memcpy(ret->digest, at + 1, strlen(at + 1) + 1);
		*at = '\0';
	}
	slash = strrchr(text, '/');
	colon = strrchr(slash ? slash : text, ':');
	if (colon) {
		if (!tag_ok(colon + 1))
			return err_say(
				e, -EINVAL,
				"'%.80s' is not a tag: it must be at most 128 letters, digits, "
				"'.', '_' and '-'",
				colon + 1);
		memcpy(ret->tag, colon + 1, strlen(colon + 1) + 1);
		*colon = '\0';
	} else if (!at) {
		memcpy(ret->tag, "latest", sizeof("latest"));
	}
	return 0;
}

static bool is_host(const char *s, size_t len)
{
	return memchr(s, '.', len) || memchr(s, ':', len) ||
	       (len == 9 && memcmp(s, "localhost", 9) == 0);
}

int ref_parse(const char *input, struct ref *ret, struct err *e)
{
	char text[IMAGE_REF_MAX], *name = text, *slash;
	const char *library = "";

	*ret = (struct ref){ 0 };
	if (!*input)
		return err_say(e, -EINVAL, "the name of an image is empty");
	if (strlen(input) >= sizeof(text))
		return err_say(e, -EINVAL, "the name of an image has at most %zu characters",
			       sizeof(text) - 1);
	memcpy(text, input, strlen(input) + 1);
	if (cut_end(text, ret, e) < 0)
		return -EINVAL;
	slash = strchr(text, '/');
	if (slash && is_host(text, (size_t)(slash - text))) {
		*slash = '\0';
		lower(text);
		if (!host_ok(text) || slash - text >= REF_HOST_MAX)
			return err_say(
				e, -EINVAL,
				"'%.80s' is not a registry: it must be a host name, optionally "
				"with a port: example.com:5000",
				text);
		memcpy(ret->host, text, (size_t)(slash - text) + 1);
		name = slash + 1;
	}
	if (!ret->host[0] || strcmp(ret->host, "index." REF_DOCKER) == 0) {
		memset(ret->host, 0, sizeof(ret->host));
		memcpy(ret->host, REF_DOCKER, sizeof(REF_DOCKER));
	}
	if (strcmp(ret->host, REF_DOCKER) == 0 && !strchr(name, '/'))
		library = LIBRARY;
	if (strlen(library) + strlen(name) >= REF_NAME_MAX)
		return err_say(e, -EINVAL, "the name of an image has at most %d characters",
			       REF_NAME_MAX - 1);
	if (!name_ok(name))
		return err_say(
			e, -EINVAL,
			"'%.80s' is not the name of an image: it must be lower case letters and "
			"digits, with '.', '_', '-' between them and '/' between parts",
			name);
	memcpy(ret->name, library, strlen(library));
	memcpy(ret->name + strlen(library), name, strlen(name) + 1);
	return 0;
}

static void format(const struct ref *r, const char *host, const char *slash, const char *name,
		   char text[IMAGE_REF_MAX])
{
	(void)snprintf(text, IMAGE_REF_MAX, "%s%s%s%s%s%s%s", host, slash, name,
		       r->tag[0] ? ":" : "", r->tag, r->digest[0] ? "@" : "", r->digest);
}

void ref_format(const struct ref *r, char text[IMAGE_REF_MAX])
{
	format(r, r->host, "/", r->name, text);
}

void ref_short(const struct ref *r, char text[IMAGE_REF_MAX])
{
	bool docker = strcmp(r->host, REF_DOCKER) == 0;
	bool library = docker && strncmp(r->name, LIBRARY, strlen(LIBRARY)) == 0 &&
		       !strchr(r->name + strlen(LIBRARY), '/');
	const char *name = library ? r->name + strlen(LIBRARY) : r->name;
	/* "a.b" of "a.b/c", a name of docker.io, would look like a registry. */
	size_t first = strcspn(name, "/");

	if (!docker || (name[first] && is_host(name, first)))
		ref_format(r, text);
	else
		format(r, "", "", name, text);
}

bool ref_is_local(const struct ref *r)
{
	size_t n = r->host[0] == '[' ? strcspn(r->host, "]") + 1 : strcspn(r->host, ":");

	return (n == 9 && memcmp(r->host, "localhost", n) == 0) ||
	       (n == 5 && memcmp(r->host, "[::1]", n) == 0) ||
	       (strncmp(r->host, "127.", 4) == 0 && only(r->host, n, DIGITS "."));
}

/* ---- patterns ------------------------------------------------------------------------------ */

bool ref_pattern_ok(const char *pattern)
{
	size_t n = strlen(pattern);

	return n > 0 && n < IMAGE_REF_MAX && only(pattern, n, LOWER UPPER DIGITS "._-/:@*[]");
}

/* Whether the pattern has a tag or a digest; without them it is one of names. */
static bool has_end(const char *pattern)
{
	const char *slash = strrchr(pattern, '/');

	return strchr(pattern, '@') || strchr(slash ? slash : pattern, ':');
}

bool ref_matches(const struct ref *r, const char *pattern)
{
	struct ref bare = *r;
	char text[IMAGE_REF_MAX];

	if (!has_end(pattern))
		bare.tag[0] = bare.digest[0] = '\0';
	/* "name:tag" also matches "name:tag@digest". */
	else if (!strchr(pattern, '@') && r->tag[0])
		bare.digest[0] = '\0';
	ref_format(&bare, text);
	if (wild_match(pattern, text))
		return true;
	ref_short(&bare, text);
	return wild_match(pattern, text);
}

bool ref_registry_ok(const char *pattern)
{
	size_t n = strlen(pattern);

	return n > 0 && n < REF_HOST_MAX && only(pattern, n, LOWER DIGITS ".-:*[]");
}

bool ref_is_of(const struct ref *r, const char *const *patterns)
{
	for (; *patterns; patterns++)
		if (wild_match(*patterns, r->host))
			return true;
	return false;
}
