/* SPDX-License-Identifier: Apache-2.0 */
/*
 * placeholder.c - Search and replace in the value of a header. See placeholder.h.
 *
 * All placeholders share a prefix, so most texts are searched once for all of them: many
 * placeholders in a large head must not slow the gate down.
 */
#include "gate/placeholder.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/base64.h"
#include "base/buf.h"

#define CREDENTIALS_MAX (16u << 10) /* decoded; longer ones stay unchanged */

/* The length of the prefix that all texts share. */
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
	_buf_ struct buf plain = BUF_INIT(CREDENTIALS_MAX), fresh = BUF_INIT(4 * CREDENTIALS_MAX);

	if (!base64_decode(credentials, strlen(credentials), &plain))
		return 0;
	int hits = replace_text(buf_str(&plain), plain.len, pairs, n, used, &fresh);

	if (hits > 0) {
		(void)buf_append(out, value, (size_t)(credentials - value));
		base64_encode(fresh.data, fresh.len, out);
	}
	if (plain.data)
		explicit_bzero(plain.data, plain.len);
	if (fresh.data)
		explicit_bzero(fresh.data, fresh.len);
	return hits > 0 && out->err ? out->err : hits;
}

int placeholder_replace(const char *value, const struct replacement *pairs, size_t n,
			unsigned char *used, struct buf *out)
{
	const char *credentials = basic(value);
	int hits = credentials ? replace_basic(value, credentials, pairs, n, used, out) : 0;

	return hits != 0 ? hits : replace_text(value, strlen(value), pairs, n, used, out);
}
