/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vault.h - Secrets by name: who may use each, and for which hosts.
 *
 * One line is one secret:
 *
 *	[OWNER[,OWNER...]:]NAME[@HOST[,HOST...]][[HEADER[,HEADER...]]]=VALUE
 *
 * NAME is a variable's name. With owners nobody else can use it. With hosts it can only be bound to
 * one of them, and its value is never given to a sandbox, nor to the front. Headers, in square
 * brackets, are those of a request that may carry it when it is bound, instead of vault_headers.
 * VALUE is everything up to the end of the line, 1 to VAULT_VALUE_MAX bytes of UTF-8 without
 * control bytes, spaces at either end, or quotes around it: quotes would be part of the value, so
 * they are refused. Blank lines and lines that begin with '#' are skipped. A name is there once; of
 * several lines with owners, once for each owner.
 *
 * Messages name the line and the name in it, never more of its content.
 */
#ifndef CAISSON_VAULT_VAULT_H
#define CAISSON_VAULT_VAULT_H

#include <stdbool.h>
#include <stddef.h>

struct err;

#define VAULT_SECRETS_MAX 1024u
#define VAULT_NAME_MAX 64u
#define VAULT_HOST_MAX 253u
#define VAULT_VALUE_MAX 8192u
#define VAULT_TEXT_MAX (1u << 20)

struct secret {
	const char *owners, *hosts; /* separated by commas; NULL: everybody, anywhere */
	const char *headers;        /* the same, in lower case; NULL: vault_headers */
	const char *name;
	const char *value; /* empty: this process may not know it */
};

struct vault {
	struct secret *list;
	size_t n;
	char *text; /* private memory that the strings are in */
	size_t used;
	bool blind; /* secrets with hosts may come without a value */
};

/* vault_init() - 0 or -ENOMEM. vault_free() wipes; idempotent, also on a zeroed struct. */
int vault_init(struct vault *v, bool blind);
void vault_free(struct vault *v);

/* vault_add() - The lines of @text. 0, or a negative errno with a message. Pure; the caller wipes
 * @text. */
int vault_add(struct vault *v, const char *text, size_t len, struct err *e);

/* vault_find() - The secret of that name that @owner may use, or NULL. @owner NULL: of any owner.
 */
const struct secret *vault_find(const struct vault *v, const char *name, const char *owner);

/* vault_lists() - Whether "A,B,C" has this member; a list that is NULL has every one. */
bool vault_lists(const char *list, const char *member);

/* vault_headers - Headers that are for credentials, separated by commas. */
extern const char *const vault_headers;
/* vault_header() - Whether the value of a secret may be put into this header, whose name is in
 * lower case. */
bool vault_header(const struct secret *s, const char *name);

/* vault_name() - Whether a secret can have this name. */
bool vault_name(const char *s, size_t len);

/* vault_host() - Whether this is a host's name in lower case: letters, digits, '-', '_' and dots
 * between. */
bool vault_host(const char *s, size_t len);

/*
 * vault_seal() - The same as text in a sealed memfd. @blind: without the values of secrets that
 * have hosts. Return: descriptor or -errno.
 */
int vault_seal(const struct vault *v, bool blind);
/* vault_unseal() - vault_add() of such a descriptor, which stays the caller's. */
int vault_unseal(struct vault *v, int fd, struct err *e);

#endif
