/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bindings.h - The secrets of one sandbox that are bound to hosts, and the certificate authority
 * that its cell trusts.
 *
 * Bindings that the front sends are checked against the vault: a secret that the operator tied to
 * hosts is bound to no other host.
 */
#ifndef CAISSON_GATE_BINDINGS_H
#define CAISSON_GATE_BINDINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "wire/gate.h"

struct buf;
struct ca;
struct replacement;
struct secret;
struct tls_server;
struct vault;

struct bindings {
	struct gate_bind *list;
	size_t n;
	struct ca *ca; /* made with the first list, and kept; NULL: the gate reads no TLS */
};

/*
 * bindings_set() - Copies @list, whose texts need not be trusted. -EINVAL: a secret does not exist
 * or is not for that host; nothing has changed then.
 */
int bindings_set(struct bindings *b, const struct vault *v, const struct gate_bind *list, size_t n);
void bindings_free(struct bindings *b);

/* bindings_has() - Whether a secret is bound to this host. */
bool bindings_has(const struct bindings *b, const char *host);

/*
 * bindings_replacements() - Placeholders and their values towards @host. Strings are borrowed from
 * @b and @v.
 * @ret, @ret_stray: room for GATE_BINDS_MAX; the second gets placeholders without a value there
 * Return: the number of entries in @ret.
 */
size_t bindings_replacements(const struct bindings *b, const struct vault *v, const char *host,
			     struct replacement *ret, struct replacement *ret_stray,
			     size_t *ret_n_stray);

/* bindings_value() - Whether a placeholder has a value towards @host now. */
bool bindings_value(const struct bindings *b, const struct vault *v, const char *placeholder,
		    const char *host);

/* bindings_name() - The name of the secret that a placeholder stands for. */
const char *bindings_name(const struct bindings *b, const char *placeholder);

/* ---- placeholders in a header --------------------------------------------------------------- */

/*
 * Placeholders are replaced by values of secrets, and values by placeholders, also inside the
 * base64 of `Basic` credentials: git and pip send the credentials of a URL in this form. The result
 * has no control bytes, because values have none (vault/vault.h). Pure.
 */
struct replacement {
	const char *from, *to;       /* from is not empty */
	const struct secret *secret; /* whose value @to is; NULL: unknown, or none */
};

/*
 * placeholder_replace() - Append @value to @out with each from replaced by its to. Replaced text is
 * not searched again.
 * @used: may be NULL; used[i] is set to 1 when pair i was found. Return: the number of
 * replacements, or the error of @out.
 */
int placeholder_replace(const char *value, const struct replacement *pairs, size_t n,
			unsigned char *used, struct buf *out);

/* ---- the certificate authority: ca.c -------------------------------------------------------- */

/* ca_new() - 0 or -ENOMEM. */
int ca_new(struct ca **ret);
void ca_free(struct ca *c); /* NULL too; sessions may outlive it */

/* ca_pem() - Append its certificate. 0 or -errno. */
int ca_pem(const struct ca *c, struct buf *out);

/* ca_server() - A TLS server that can prove to be @host, a canonical name. Borrowed until the next
 * call. NULL: out of memory. */
struct tls_server *ca_server(struct ca *c, const char *host);

#endif
