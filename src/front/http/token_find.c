/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token_find.c - Find a token inside a text: as it is, percent-encoded, or in base64.
 *
 * Only hashes of tokens are known, and a hash of every piece of a text would take too long. So each
 * token also has a print: 32 bits over its first TOKEN_MIN characters. One pass computes the prints
 * of all pieces of that length, a table has the tokens by print, and only for a piece with the
 * print of a token are hashes compared. A print leaves 96 of the 128 bits of the weakest random
 * token unknown. The time does not depend on how much of a token a text has, beyond these
 * characters.
 */
#include <errno.h>
#include <openssl/crypto.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "front/http/token.h"
#include "hash/hash.h"

#define FACTOR 0x01000193u /* odd; products are modulo 2^32 */

uint32_t token_print(const char *s)
{
	uint32_t print = 0;

	for (size_t i = 0; i < TOKEN_MIN; i++)
		print = print * FACTOR + (unsigned char)s[i];
	return print;
}

/* Whether @text begins with a token that has this print. One hash for each run of equal lengths. */
static int begins(const struct token_set *s, uint32_t print, const char *text, size_t len)
{
	unsigned char hash[TOKEN_HASH];
	size_t hashed = 0;
	int is = 0;

	for (size_t i = s->slots[print >> 16]; i > 0; i = s->list[i - 1].next) {
		const struct token *t = &s->list[i - 1];

		if (t->print != print || t->len > len)
			continue;
		if (t->len != hashed && !hash_sha256(text, t->len, hash))
			return -ENOMEM;
		hashed = t->len;
		is |= CRYPTO_memcmp(hash, t->hash, sizeof(hash)) == 0;
	}
	OPENSSL_cleanse(hash, sizeof(hash));
	return is;
}

static int find(const struct token_set *s, const char *text, size_t len)
{
	uint32_t leaving = 1, print;
	int r = 0;

	if (len < TOKEN_MIN)
		return 0;
	print = token_print(text);
	for (size_t i = 0; i < TOKEN_MIN; i++)
		leaving *= FACTOR;
	for (size_t at = 0;; at++) {
		r = begins(s, print, text + at, len - at);
		if (r != 0 || at + TOKEN_MIN == len)
			return r;
		print = print * FACTOR + (unsigned char)text[at + TOKEN_MIN] -
			leaving * (unsigned char)text[at];
	}
}

/* ---- encodings ----------------------------------------------------------------------------- */

static size_t decode_percent(const char *text, size_t len, char *out)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		int byte = hex_escape(text + i, len - i);

		out[n++] = byte < 0 ? text[i] : (char)byte;
		i += byte < 0 ? 0 : 2;
	}
	return n;
}

/* Both alphabets of RFC 4648. */
static int sextet(char c)
{
	return c >= 'A' && c <= 'Z' ? c - 'A' :
	       c >= 'a' && c <= 'z' ? c - 'a' + 26 :
	       c >= '0' && c <= '9' ? c - '0' + 52 :
	       c == '+' || c == '-' ? 62 :
	       c == '/' || c == '_' ? 63 :
				      -1;
}

/*
 * Each word by itself, without its first @skip characters; a NUL, which no token has, separates
 * them. The text before base64 may be of the same alphabet ("/x/", "%20"), so a word has four
 * alignments.
 */
static size_t decode_base64(const char *text, size_t len, unsigned int skip, char *out)
{
	unsigned int bits = 0, held = 0, left = skip;
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		int six = sextet(text[i]);

		if (six < 0) {
			if (n > 0 && out[n - 1])
				out[n++] = '\0';
			bits = held = 0;
			left = skip;
			continue;
		}
		if (left > 0) {
			left--;
			continue;
		}
		bits = (bits << 6 | (unsigned int)six) & 0xffff;
		held += 6;
		if (held >= 8) {
			held -= 8;
			out[n++] = (char)(bits >> held & 0xff);
		}
	}
	return n;
}

int token_within(const struct token_set *s, const char *text, size_t len)
{
	if (s->n == 0 || len < TOKEN_MIN)
		return 0;
	int r = find(s, text, len);
	char *decoded = r == 0 ? malloc(len) : NULL;

	if (r != 0)
		return r;
	if (!decoded)
		return -ENOMEM;
	if (memchr(text, '%', len))
		r = find(s, decoded, decode_percent(text, len, decoded));
	for (unsigned int skip = 0; r == 0 && skip < 4; skip++)
		r = find(s, decoded, decode_base64(text, len, skip, decoded));
	OPENSSL_cleanse(decoded, len);
	free(decoded);
	return r;
}
