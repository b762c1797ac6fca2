/* SPDX-License-Identifier: Apache-2.0 */
/* secret_use.h - One entry of the field `secrets`: NAME, or NAME@HOST for a bound one. Pure. */
#ifndef CAISSON_FRONT_POLICY_SECRET_USE_H
#define CAISSON_FRONT_POLICY_SECRET_USE_H

#include <stdbool.h>

#include "vault/vault.h"

struct secret_use {
	char name[VAULT_NAME_MAX + 1];
	char host[VAULT_HOST_MAX + 1]; /* empty: plain */
};

/* secret_use_parse() - False: it has another form. Pure. */
bool secret_use_parse(const char *text, struct secret_use *ret);

#endif
