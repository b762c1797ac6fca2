/* SPDX-License-Identifier: Apache-2.0 */
/* state.h - Where the state directory is when nobody names one. */
#ifndef CAISSON_CLIENT_STATE_H
#define CAISSON_CLIENT_STATE_H

#include <stddef.h>

struct err;

/*
 * state_dir() - @given, or /run/caisson (root), or @runtime/caisson, or /tmp/caisson-UID.
 * @given: from --state or CAISSON_STATE; NULL for the default
 * @runtime: XDG_RUNTIME_DIR, may be NULL
 * Return: 0 or -ENAMETOOLONG.
 */
int state_dir(const char *given, const char *runtime, char *path, size_t size, struct err *e);

#endif
