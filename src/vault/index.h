/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index.h - The address of a package index, taken apart: the part that a fetcher is told, and the
 * credentials, which the gate alone has. Pure.
 *
 * Credentials become secrets of the vault that are bound to the index and that only fetchers can
 * use. A fetcher has their placeholders; the gate puts the values in, over TLS. So an index with
 * credentials must be https.
 *
 * Cells reach servers by name. An index at an address, or at localhost, has a name of its own in
 * the fetcher's cell (index_url.name), and the gate knows which server that is.
 */
#ifndef CAISSON_VAULT_INDEX_H
#define CAISSON_VAULT_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "vault/vault.h"

struct buf;

#define INDEX_URL_MAX 1024u
#define INDEX_KEY_MAX 4096u /* some are tokens of 2 KiB */

enum index_kind { INDEX_PIP, INDEX_NPM, INDEX_KINDS };

enum index_key { INDEX_USER, INDEX_PASSWORD, INDEX_TOKEN, INDEX_KEYS };

/* A missing key is empty. Wipe it: index_keys_wipe(). */
struct index_keys {
	char value[INDEX_KEYS][INDEX_KEY_MAX];
};

struct index_url {
	char url[INDEX_URL_MAX];       /* for people: without credentials */
	char inside[INDEX_URL_MAX];    /* for the fetcher: the same, with name as its host */
	char host[VAULT_HOST_MAX + 1]; /* a name in lower case, or an address without brackets */
	char name[VAULT_HOST_MAX + 1]; /* of the host in cells */
	uint16_t port;
	bool secure;     /* https */
	bool is_address; /* host is an address or localhost, so name is another one */
};

/*
 * index_url_parse() - @keys: filled from "user:password@", decoded; NULL: credentials are refused.
 * Return: 0, or -EINVAL with what is wrong and how to mend it. No message has a part of the
 * credentials.
 */
int index_url_parse(enum index_kind kind, const char *text, struct index_url *ret,
		    struct index_keys *keys, struct err *e);

/* index_is_loopback() - Whether the host is this machine: localhost, 127.0.0.0/8, ::1. */
bool index_is_loopback(const struct index_url *u);

bool index_keys_any(const struct index_keys *k);
void index_keys_wipe(struct index_keys *k);

/* index_key_name() - The name of that secret in the vault, and of the fetcher's variable with its
 * placeholder. */
const char *index_key_name(enum index_kind kind, enum index_key key);
/* index_key_reserved() - Whether a name is one of these: no sandbox but a fetcher may ask for it.
 */
bool index_key_reserved(const char *name);

/* index_keys_lines() - Append them as lines of vault.h. 0, or -EINVAL: the index is not https. */
int index_keys_lines(enum index_kind kind, const struct index_url *u, const struct index_keys *k,
		     struct buf *out, struct err *e);

#endif
