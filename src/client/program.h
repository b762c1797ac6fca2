/* SPDX-License-Identifier: Apache-2.0 */
/* program.h - Where our other programs are. */
#ifndef CAISSON_CLIENT_PROGRAM_H
#define CAISSON_CLIENT_PROGRAM_H

#include <stddef.h>

struct err;

/* program_find() - Beside our own executable, then in libexecdir. 0 or -ENOENT with the fix. */
int program_find(const char *name, char *path, size_t size, struct err *e);

#endif
