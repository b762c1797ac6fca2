/* SPDX-License-Identifier: Apache-2.0 */
/* name.h - The form that names of sandboxes and workspaces have. */
#ifndef CAISSON_FRONT_NAME_H
#define CAISSON_FRONT_NAME_H

#include <stdbool.h>
#include <stddef.h>

#define NAME_LENGTH_MAX 64
#define NAME_PATTERN "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"

/* name_ok() - Whether this may be a name. Pure. */
bool name_ok(const char *s, size_t len);

#endif
