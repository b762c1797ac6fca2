/* SPDX-License-Identifier: Apache-2.0 */
/*
 * binds.h - Secrets that are bound to hosts, of one sandbox; and the authority that its cell
 * trusts.
 *
 * What the front asks for is checked against the vault: a secret that the operator tied to hosts is
 * bound to no other, whoever asks.
 */
#ifndef CAISSON_GATE_BINDS_H
#define CAISSON_GATE_BINDS_H

#include <stdbool.h>
#include <stddef.h>

#include "wire/gate.h"

struct ca;
struct swap;
struct vault;

struct binds {
	struct gate_bind *list;
	size_t n;
	struct ca *ca; /* made with the first list, and kept; NULL: nothing is looked into */
};

/*
 * binds_set() - Copies @list, whose texts need not be trusted. -EINVAL: a secret that is not there
 * or not for that host; nothing has changed then.
 */
int binds_set(struct binds *b, const struct vault *v, const struct gate_bind *list, size_t n);
void binds_free(struct binds *b);

/* binds_has() - Whether a secret is bound to this host. */
bool binds_has(const struct binds *b, const char *host);

/*
 * binds_swaps() - What is to be swapped towards @host. Strings are borrowed from @b and @v.
 * @ret, @ret_stray: room for GATE_BINDS_MAX; the second gets placeholders that have no value there
 * Return: how many are in @ret.
 */
size_t binds_swaps(const struct binds *b, const struct vault *v, const char *host, struct swap *ret,
		   struct swap *ret_stray, size_t *ret_n_stray);

/* binds_value() - Whether a placeholder has a value towards @host, as of now. */
bool binds_value(const struct binds *b, const struct vault *v, const char *placeholder,
		 const char *host);

/* binds_name() - Which secret a placeholder stands for. */
const char *binds_name(const struct binds *b, const char *placeholder);

#endif
