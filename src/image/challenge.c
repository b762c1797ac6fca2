/* SPDX-License-Identifier: Apache-2.0 */
/*
 * challenge.c - "Bearer realm="...", service="...", Basic realm="..."": a word that no '=' follows
 * begins a challenge, the others are its parameters.
 */
#include "image/challenge.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#define TOKEN_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~"

struct word {
	const char *text;
	size_t len;
};

static bool is(struct word w, const char *name)
{
	return w.len == strlen(name) && strncasecmp(w.text, name, w.len) == 0;
}

/* A token or a quoted string into @to, if that is not NULL. Return: what follows. */
static const char *take_value(const char *p, char *to, size_t size)
{
	size_t n = 0;
	bool quoted = *p == '"', fits = true;

	if (to)
		to[0] = '\0';
	p += quoted;
	while (*p && (quoted ? *p != '"' : *p != ',' && *p != ' ' && *p != '\t')) {
		if (quoted && *p == '\\' && p[1])
			p++;
		fits = fits && n + 1 < size && *p >= ' ' && *p <= '~';
		if (fits && to)
			to[n++] = *p;
		p++;
	}
	fits = fits && (!quoted || *p == '"');
	if (to)
		to[fits ? n : 0] = '\0';
	return p + (quoted && *p);
}

static char *place(struct challenge *c, struct word name, size_t *size)
{
	if (is(name, "realm")) {
		*size = sizeof(c->realm);
		return c->realm;
	}
	if (is(name, "service")) {
		*size = sizeof(c->service);
		return c->service;
	}
	if (is(name, "scope")) {
		*size = sizeof(c->scope);
		return c->scope;
	}
	*size = 0;
	return NULL;
}

static void begin(struct challenge *c, struct word scheme, bool *bearer)
{
	*bearer = is(scheme, "Bearer") && c->scheme != CHALLENGE_BEARER;
	if (*bearer)
		c->scheme = CHALLENGE_BEARER;
	else if (is(scheme, "Basic") && c->scheme == CHALLENGE_NONE)
		c->scheme = CHALLENGE_BASIC;
}

void challenge_parse(struct challenge *c, const char *p)
{
	bool bearer = false;

	while (*(p += strspn(p, " \t,\r\n"))) {
		struct word w = { p, strspn(p, TOKEN_CHARS) };
		const char *after = w.text + w.len;
		size_t size = 0;

		if (w.len == 0)
			return;
		after += strspn(after, " \t");
		if (*after == '=') {
			char *to = bearer ? place(c, w, &size) : NULL;

			after++;
			p = take_value(after + strspn(after, " \t"), to, size);
		} else {
			begin(c, w, &bearer);
			p = w.text + w.len;
		}
	}
}
