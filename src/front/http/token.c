/* SPDX-License-Identifier: Apache-2.0 */
/* token.c - Read tokens, keep their hashes, and compare a token with them. */
#include "front/http/token.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/private.h"
#include "hash/hash.h"

#define FILE_MAX (1u << 20)

_Static_assert(TOKEN_HASH == HASH_BYTES, "hashes are SHA-256");

static bool is_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* RFC 6750's b64token: what may follow "Bearer ". */
static bool token_chars(const char *s, size_t len)
{
	while (len > 0 && s[len - 1] == '=')
		len--;
	for (size_t i = 0; i < len; i++)
		if (!is_alnum(s[i]) && !(s[i] && strchr("-._~+/", s[i])))
			return false;
	return len > 0;
}

static bool owner_chars(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!is_alnum(s[i]) && (i == 0 || !(s[i] && strchr("-._", s[i]))))
			return false;
	return len > 0 && len < OWNER_MAX;
}

/* One line, trimmed and not empty. The message names @number only: the rest is secret. */
static int parse_line(const char *s, size_t len, size_t number, struct token_set *set,
		      struct err *e)
{
	const char *colon = memchr(s, ':', len);
	const char *secret = colon ? colon + 1 : s;
	size_t n_owner = colon ? (size_t)(colon - s) : 0;
	size_t n_secret = len - (size_t)(secret - s);

	if (set->n == TOKENS_MAX)
		return err_say(e, -E2BIG, "line %zu: more than %d tokens", number, TOKENS_MAX);

	struct token *t = &set->list[set->n];

	if (!colon) {
		(void)snprintf(t->owner, sizeof(t->owner), "token-%zu", set->n + 1);
	} else if (!owner_chars(s, n_owner)) {
		return err_say(e, -EINVAL,
			       "line %zu: the name before ':' must have 1 to %d letters, digits, "
			       "'-', '_' or '.'",
			       number, OWNER_MAX - 1);
	} else if ((n_owner == 5 && memcmp(s, "local", 5) == 0) ||
		   (n_owner == 9 && memcmp(s, "anonymous", 9) == 0)) {
		return err_say(e, -EINVAL, "line %zu: this name is reserved, choose another",
			       number);
	} else {
		memcpy(t->owner, s, n_owner);
		t->owner[n_owner] = '\0';
	}
	if (n_secret < TOKEN_MIN || n_secret > TOKEN_MAX)
		return err_say(e, -EINVAL,
			       "line %zu: a token has %d to %d characters; `openssl rand -hex 32` "
			       "makes one",
			       number, TOKEN_MIN, TOKEN_MAX);
	if (!token_chars(secret, n_secret))
		return err_say(e, -EINVAL,
			       "line %zu: a token has letters, digits and -._~+/= only; `openssl "
			       "rand -hex 32` makes one",
			       number);
	if (!hash_sha256(secret, n_secret, t->hash))
		return err_set(e, -ENOMEM, "line %zu: hash the token", number);
	t->print = token_print(secret);
	t->len = (uint16_t)n_secret;
	t->next = set->slots[t->print >> 16];
	set->slots[t->print >> 16] = (uint16_t)++set->n;
	return 0;
}

int token_parse(const char *text, size_t len, struct token_set *ret, struct err *e)
{
	struct token_set set = { .list = calloc(TOKENS_MAX, sizeof(*set.list)),
				 .slots = calloc(TOKEN_SLOTS, sizeof(*set.slots)) };
	size_t number = 0, at = 0;
	int r = set.list && set.slots ? 0 : err_set(e, -ENOMEM, "hold tokens");

	while (r == 0 && at < len) {
		const char *end = memchr(text + at, '\n', len - at);
		size_t n = end ? (size_t)(end - text) - at : len - at;
		const char *s = text + at;

		at += n + 1;
		number++;
		while (n > 0 && (*s == ' ' || *s == '\t'))
			s++, n--;
		while (n > 0 && (s[n - 1] == ' ' || s[n - 1] == '\t' || s[n - 1] == '\r'))
			n--;
		if (n > 0 && *s != '#')
			r = parse_line(s, n, number, &set, e);
	}
	if (r < 0)
		token_free(&set);
	*ret = set;
	return r;
}

int token_load(const char *path, struct token_set *ret, struct err *e)
{
	_fd_ int fd = private_open(path, e);
	struct token_set set = { 0 };
	size_t len = 0;

	if (fd < 0)
		return fd;
	char *text = fd_read_whole(fd, FILE_MAX, &len);

	if (!text)
		return errno == EFBIG ? err_say(e, -E2BIG, "is larger than 1 MiB") :
					err_set(e, -errno, "read it");
	int r = token_parse(text, len, &set, e);

	OPENSSL_cleanse(text, len);
	free(text);
	if (r == 0 && set.n == 0) {
		token_free(&set);
		r = err_say(e, -EINVAL,
			    "holds no token; one line `name:token` for each caller, as in "
			    "`echo \"me:$(openssl rand -hex 32)\"`");
	}
	if (r == 0)
		*ret = set;
	return r;
}

int token_owner(const struct token_set *s, const char *token, size_t len, const char **ret_owner)
{
	unsigned char hash[TOKEN_HASH];
	size_t at = 0;

	*ret_owner = NULL;
	if (s->n == 0 || len < TOKEN_MIN || len > TOKEN_MAX)
		return 0;
	if (!hash_sha256(token, len, hash))
		return -ENOMEM;
	/* No branch on the outcome: @at becomes 1 + the index of the last that is equal. */
	for (size_t i = 0; i < s->n; i++) {
		size_t differs =
			(size_t)(unsigned)CRYPTO_memcmp(hash, s->list[i].hash, sizeof(hash));
		size_t mask = (size_t)0 - ((differs - 1) >> (sizeof(size_t) * 8 - 1));

		at = (at & ~mask) | ((i + 1) & mask);
	}
	OPENSSL_cleanse(hash, sizeof(hash));
	if (at)
		*ret_owner = s->list[at - 1].owner;
	return 0;
}

void token_free(struct token_set *s)
{
	if (s->list)
		OPENSSL_cleanse(s->list, TOKENS_MAX * sizeof(*s->list));
	free(s->list);
	free(s->slots);
	*s = (struct token_set){ 0 };
}
