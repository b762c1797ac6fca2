/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token.h - The tokens of callers, of which only hashes are kept.
 *
 * The file has one token per line, `name:token` or `token` alone (its owner is then "token-1",
 * "token-2"... by position); blank lines and lines that start with '#' are skipped. Several tokens
 * may have one name: that is how one is replaced without an interruption. A token has 32 to 512
 * characters of those that an Authorization header can carry (letters, digits, -._~+/ and =).
 */
#ifndef CAISSON_FRONT_TOKEN_H
#define CAISSON_FRONT_TOKEN_H

#include <stddef.h>
#include <stdint.h>

#include "front/support/name.h"

struct err;

#define TOKEN_MIN 32
#define TOKEN_MAX 512
#define TOKEN_HASH 32 /* SHA-256 */
#define TOKENS_MAX 1024

struct token {
	unsigned char hash[TOKEN_HASH];
	uint32_t print; /* token_print() */
	uint16_t len;
	uint16_t next; /* 1 + the index of the next token of its slot, or 0 */
	char owner[OWNER_MAX];
};

#define TOKEN_SLOTS 65536u

struct token_set {
	struct token *list;
	size_t n;
	uint16_t *slots; /* by the upper half of a print: 1 + the index of a token, or 0 */
};

/*
 * token_parse() - Tokens from the text of a file. Pure; the caller wipes @text.
 * Return: 0, or a negative errno with a message that names the line and never its content. On
 * failure @ret is empty.
 */
int token_parse(const char *text, size_t len, struct token_set *ret, struct err *e);

/*
 * token_load() - token_parse() of a file that only its owner (we, or root) can read. The text
 * is wiped from memory. A file without any token is an error.
 */
int token_load(const char *path, struct token_set *ret, struct err *e);

/*
 * token_owner() - Whose token this is: every stored hash is compared, in time that depends on their
 * number only.
 * @ret_owner: the owner's name, owned by @s, or NULL
 * Return: 0, or -ENOMEM: the owner is not known.
 */
int token_owner(const struct token_set *s, const char *token, size_t len, const char **ret_owner);

/*
 * token_within() - Whether a text contains a token: anywhere in it, as it is, percent-encoded, or
 * in base64. token_find.c.
 * Return: 1, 0, or -ENOMEM: not known.
 */
int token_within(const struct token_set *s, const char *text, size_t len);

/* token_print() - A weak hash of the first TOKEN_MIN bytes at @s, by which token_within() chooses
 * what it compares. */
uint32_t token_print(const char *s);

void token_free(struct token_set *s);

#endif
