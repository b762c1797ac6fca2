/* SPDX-License-Identifier: Apache-2.0 */
/* bindings.c - The bindings of one sandbox: checked, looked up by host, put into headers. */
#include "gate/bindings.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/base64.h"
#include "base/buf.h"
#include "vault/vault.h"

#define CREDENTIALS_MAX (16u << 10) /* decoded; longer ones stay unchanged */

static bool is_good(const struct gate_bind *b, const struct vault *v)
{
	/* A string in a fixed array may lack its NUL. */
	if (!memchr(b->host, '\0', sizeof(b->host)) || !memchr(b->name, '\0', sizeof(b->name)) ||
	    !memchr(b->owner, '\0', sizeof(b->owner)) ||
	    !memchr(b->placeholder, '\0', sizeof(b->placeholder)) || !b->placeholder[0])
		return false;
	const struct secret *s = vault_find(v, b->name, b->owner);

	return s && vault_lists(s->hosts, b->host);
}

int bindings_set(struct bindings *b, const struct vault *v, const struct gate_bind *list, size_t n)
{
	if (n > GATE_BINDS_MAX)
		return -EINVAL;
	for (size_t i = 0; i < n; i++)
		if (!is_good(&list[i], v))
			return -EINVAL;
	struct gate_bind *copy = malloc(n * sizeof(*list) + 1);

	if (!copy || (!b->ca && ca_new(&b->ca) < 0)) {
		free(copy);
		return -ENOMEM;
	}
	memcpy(copy, list, n * sizeof(*list));
	free(b->list);
	b->list = copy;
	b->n = n;
	return 0;
}

void bindings_free(struct bindings *b)
{
	free(b->list);
	ca_free(b->ca);
	*b = (struct bindings){ 0 };
}

bool bindings_has(const struct bindings *b, const char *host)
{
	for (size_t i = 0; i < b->n; i++)
		if (strcmp(b->list[i].host, host) == 0)
			return true;
	return false;
}

static bool is_listed(const struct replacement *list, size_t n, const char *placeholder)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(list[i].from, placeholder) == 0)
			return true;
	return false;
}

static const struct secret *value_of(const struct gate_bind *b, const struct vault *v,
				     const char *host)
{
	const struct secret *s = strcmp(b->host, host) == 0 ? vault_find(v, b->name, b->owner) :
							      NULL;

	/* The operator may have changed the hosts since it was bound. */
	return s && vault_lists(s->hosts, host) ? s : NULL;
}

bool bindings_value(const struct bindings *b, const struct vault *v, const char *placeholder,
		    const char *host)
{
	for (size_t i = 0; i < b->n; i++)
		if (strcmp(b->list[i].placeholder, placeholder) == 0 &&
		    value_of(&b->list[i], v, host))
			return true;
	return false;
}

size_t bindings_replacements(const struct bindings *b, const struct vault *v, const char *host,
			     struct replacement *ret, struct replacement *ret_stray,
			     size_t *ret_n_stray)
{
	size_t n = 0, stray = 0;

	for (size_t i = 0; i < b->n; i++) {
		const struct secret *s = value_of(&b->list[i], v, host);

		if (s)
			ret[n++] = (struct replacement){ b->list[i].placeholder, s->value, s };
	}
	for (size_t i = 0; i < b->n; i++)
		if (!is_listed(ret, n, b->list[i].placeholder) &&
		    !is_listed(ret_stray, stray, b->list[i].placeholder))
			ret_stray[stray++] =
				(struct replacement){ b->list[i].placeholder, "", NULL };
	*ret_n_stray = stray;
	return n;
}

const char *bindings_name(const struct bindings *b, const char *placeholder)
{
	for (size_t i = 0; i < b->n; i++)
		if (strcmp(b->list[i].placeholder, placeholder) == 0)
			return b->list[i].name;
	return "";
}

/* ---- placeholders in a header --------------------------------------------------------------- */

/*
 * The length of the prefix that all texts share. All placeholders have one, so most texts are
 * searched once for all of them: many placeholders in a large head must not slow the gate down.
 */
static size_t common(const struct replacement *pairs, size_t n)
{
	size_t len = n > 0 ? strlen(pairs[0].from) : 0;

	for (size_t i = 1; i < n; i++) {
		size_t k = 0;

		while (k < len && pairs[i].from[k] == pairs[0].from[k])
			k++;
		len = k;
	}
	return len;
}

/* Whether @from is at @at, which ends with a NUL. The first @shared bytes are equal; the next one
 * differs for most. */
static bool is_here(const char *at, const char *from, size_t shared)
{
	if (from[shared] && from[shared] != at[shared])
		return false;
	return strncmp(at, from, strlen(from)) == 0;
}

/* Where the next text could begin; NULL: nowhere. */
static const char *candidate(const char *at, const char *end, const char *prefix, size_t len,
			     const bool *first)
{
	if (len > 0)
		return memmem(at, (size_t)(end - at), prefix, len);
	while (at < end && !first[(unsigned char)*at])
		at++;
	return at < end ? at : NULL;
}

static int replace_text(const char *s, size_t len, const struct replacement *pairs, size_t n,
			unsigned char *used, struct buf *out)
{
	const char *end = s + len, *done = s, *at = s;
	size_t shared = common(pairs, n);
	bool first[256] = { false };
	int hits = 0;

	for (size_t i = 0; i < n; i++)
		first[(unsigned char)pairs[i].from[0]] = true;
	while (n > 0 && (at = candidate(at, end, pairs[0].from, shared, first))) {
		size_t i = 0;

		while (i < n && !is_here(at, pairs[i].from, shared))
			i++;
		if (i == n) {
			at++;
			continue;
		}
		(void)buf_append(out, done, (size_t)(at - done));
		(void)buf_puts(out, pairs[i].to);
		at += strlen(pairs[i].from);
		done = at;
		if (used)
			used[i] = 1;
		hits++;
	}
	(void)buf_append(out, done, (size_t)(end - done));
	return out->err ? out->err : hits;
}

/* The credentials after "Basic ", or NULL. */
static const char *basic(const char *value)
{
	if (strncasecmp(value, "Basic", 5) != 0 || (value[5] != ' ' && value[5] != '\t'))
		return NULL;
	return value + 5 + strspn(value + 5, " \t");
}

static int replace_basic(const char *value, const char *credentials,
			 const struct replacement *pairs, size_t n, unsigned char *used,
			 struct buf *out)
{
	_secret_ struct buf plain = BUF_INIT(CREDENTIALS_MAX),
			    fresh = BUF_INIT(4 * CREDENTIALS_MAX);

	if (!base64_decode(credentials, strlen(credentials), &plain))
		return 0;
	int hits = replace_text(buf_str(&plain), plain.len, pairs, n, used, &fresh);

	if (hits > 0) {
		(void)buf_append(out, value, (size_t)(credentials - value));
		base64_encode(fresh.data, fresh.len, out);
	}
	return hits > 0 && out->err ? out->err : hits;
}

int placeholder_replace(const char *value, const struct replacement *pairs, size_t n,
			unsigned char *used, struct buf *out)
{
	const char *credentials = basic(value);
	int hits = credentials ? replace_basic(value, credentials, pairs, n, used, out) : 0;

	return hits != 0 ? hits : replace_text(value, strlen(value), pairs, n, used, out);
}
