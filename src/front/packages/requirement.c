/* SPDX-License-Identifier: Apache-2.0 */
/* requirement.c - Names, extras and versions, taken apart and put together again. */
#include "front/packages/requirement.h"

#include <stdio.h>
#include <string.h>

#include "base/fd.h"

#define DIGITS "0123456789"
#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define ALNUM DIGITS LOWER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

static const char *const names[ECO_MAX_] = {
	[ECO_PYTHON] = "python", [ECO_JAVASCRIPT] = "javascript"
};

enum ecosystem ecosystem_find(const char *name)
{
	static const struct {
		const char *name;
		enum ecosystem eco;
	} known[] = { { "python", ECO_PYTHON },   { "pip", ECO_PYTHON },
		      { "python3", ECO_PYTHON },  { "javascript", ECO_JAVASCRIPT },
		      { "node", ECO_JAVASCRIPT }, { "npm", ECO_JAVASCRIPT },
		      { "js", ECO_JAVASCRIPT } };

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (strcmp(known[i].name, name) == 0)
			return known[i].eco;
	return ECO_MAX_;
}

const char *ecosystem_name(enum ecosystem eco)
{
	return names[eco];
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static const char *python_name(const char *s, size_t len, char *ret)
{
	size_t n = 0;

	if (len == 0 || len > PACKAGE_NAME_MAX)
		return "a name has 1 to 128 characters";
	if (strspn(s, ALNUM "-_.") < len || !strchr(ALNUM, s[0]) || !strchr(ALNUM, s[len - 1]))
		return "a name has letters, digits, '-', '_' and '.', and begins and ends with a letter or digit";
	for (size_t i = 0; i < len; i++) {
		char c = s[i] == '_' || s[i] == '.' ? '-' : lower(s[i]);

		if (c != '-' || ret[n - 1] != '-')
			ret[n++] = c;
	}
	ret[n] = '\0';
	return NULL;
}

static const char *npm_name(const char *s, size_t len, char *ret)
{
	size_t scope = s[0] == '@' ? 1 + strspn(s + 1, ALNUM "-_.~") : 0, rest;

	if (len == 0 || len > PACKAGE_NAME_MAX)
		return "a name has 1 to 128 characters";
	if (scope && (scope < 2 || scope >= len || s[scope] != '/'))
		return "a scope is followed by a name, as in @types/node";
	rest = scope ? scope + 1 : 0;
	if (rest >= len || strspn(s + rest, ALNUM "-_.~") < len - rest || strchr("-_.", s[rest]) ||
	    (scope && strchr("-_.", s[1])))
		return "a name has letters, digits, '-', '_', '.' and '~', and does not begin with a mark";
	memcpy(ret, s, len); /* capitals stay: JSONStream and jsonstream are two packages */
	ret[len] = '\0';
	return NULL;
}

const char *requirement_name(enum ecosystem eco, const char *name, char ret[PACKAGE_NAME_MAX + 1])
{
	size_t len = strnlen(name, PACKAGE_NAME_MAX + 1);

	return eco == ECO_PYTHON ? python_name(name, len, ret) : npm_name(name, len, ret);
}

/* ---- versions ------------------------------------------------------------------------------ */

static bool is_version(const char *s, const char *chars)
{
	size_t len = strlen(s);

	return len > 0 && len <= PACKAGE_VERSION_MAX && strspn(s, chars) == len;
}

/* ">=2,<3": operators and versions, commas between them. */
static bool python_versions(const char *s)
{
	while (*s) {
		size_t op = strspn(s, "<>=!~");
		size_t len = strspn(s + op, ALNUM "._*+!-");

		if (op == 0 || op > 3 || len == 0 || len > PACKAGE_VERSION_MAX)
			return false;
		s += op + len;
		if (*s == ',' && s[1])
			s++;
		else if (*s)
			return false;
	}
	return true;
}

/* [socks,http2] */
static size_t extras_length(const char *s)
{
	size_t len;

	if (*s != '[')
		return 0;
	len = 1 + strspn(s + 1, ALNUM "-_.,");
	return len > 1 && s[len] == ']' ? len + 1 : 0;
}

static const char *parse_python(char *s, const char *version, struct requirement *ret)
{
	size_t len = strspn(s, ALNUM "-_.");
	const char *why = python_name(s, len, ret->name);
	size_t extras = extras_length(s + len);
	const char *rest = s + len + extras;

	if (why)
		return why;
	if (version && rest[0])
		return "a version is in `version` or in the name, not in both";
	if (version && !is_version(version, ALNUM "._+!-*"))
		return "a version is like 2.31.0";
	if (!python_versions(rest))
		return "after the name only versions may follow, as in requests>=2,<3; no address, path or option";
	if (snprintf(ret->text, sizeof(ret->text), "%s%.*s%s%s", ret->name, (int)extras, s + len,
		     version ? "==" : "", version ? version : rest) >= (int)sizeof(ret->text))
		return "it is too long";
	ret->exact = (version && !strchr(version, '*')) ||
		     (strncmp(rest, "==", 2) == 0 && !strpbrk(rest, ",*"));
	return NULL;
}

static const char *parse_npm(char *s, const char *version, struct requirement *ret)
{
	char *at = strchr(s + 1, '@');
	const char *why, *range = version;

	if (at) {
		if (version)
			return "a version is in `version` or in the name, not in both";
		*at = '\0';
		range = at + 1;
	}
	why = npm_name(s, strlen(s), ret->name);
	if (why)
		return why;
	if (range && !is_version(range, ALNUM ".^~<>=*+-"))
		return "after the @ a version, range or tag follows, as in left-pad@^1.3; no address or path";
	if (snprintf(ret->text, sizeof(ret->text), "%s%s%s", ret->name, range ? "@" : "",
		     range ? range : "") >= (int)sizeof(ret->text))
		return "it is too long";
	ret->exact = range && strspn(range, DIGITS) > 0 && strchr(range, '.');
	return NULL;
}

static bool is_word(char c)
{
	return strchr(ALNUM "._-+*!", c) && c;
}

const char *requirement_parse(enum ecosystem eco, const char *text, const char *version,
			      struct requirement *ret)
{
	char copy[REQUIREMENT_MAX + 1];
	size_t n = 0;

	*ret = (struct requirement){ .exact = false };
	if (version && (!*version || strcmp(version, "latest") == 0))
		version = NULL;
	for (bool gap = false; *text; text++) {
		if (*text == ' ') {
			gap = true;
			continue;
		}
		/* Without the space two words would become one name that nobody requested. */
		if (gap && n > 0 && is_word(copy[n - 1]) && is_word(*text))
			return "a space stands between two words; each package is one entry of its own";
		gap = false;
		if (n == REQUIREMENT_MAX)
			return "it is too long";
		copy[n++] = *text;
	}
	copy[n] = '\0';
	if (n == 0)
		return "it is empty";
	return eco == ECO_PYTHON ? parse_python(copy, version, ret) : parse_npm(copy, version, ret);
}
