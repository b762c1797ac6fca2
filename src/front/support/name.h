/* SPDX-License-Identifier: Apache-2.0 */
/* name.h - Names of sandboxes and workspaces, of their owners, and identifiers. */
#ifndef CAISSON_FRONT_NAME_H
#define CAISSON_FRONT_NAME_H

#include <stdbool.h>
#include <stddef.h>

#define NAME_LENGTH_MAX 64
#define NAME_PATTERN "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"

/* The name of a caller, to whom sandboxes and everything in them belong; with its NUL. */
#define OWNER_MAX 64

/* name_ok() - Whether this may be the name of a sandbox or workspace. Pure. */
bool name_ok(const char *s, size_t len);

/* random_id() - An identifier that cannot be guessed: 32 hexadecimal digits. */
void random_id(char id[33]);

#endif
