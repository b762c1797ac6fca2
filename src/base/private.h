/* SPDX-License-Identifier: Apache-2.0 */
/* private.h - Files that hold secrets, and memory that holds them. */
#ifndef CAISSON_BASE_PRIVATE_H
#define CAISSON_BASE_PRIVATE_H

#include <stddef.h>

struct err;

/*
 * private_open() - For reading: a plain file of ours or of root's that nobody else can read or
 * change. Return: descriptor, or a negative errno with a message that names the fix and not the
 * path.
 */
int private_open(const char *path, struct err *e);

/* private_alloc() - Zeroed memory, not in core dumps, if possible not in swap; or NULL. */
void *private_alloc(size_t size);
/* private_free() - Wiped first. @p may be NULL. */
void private_free(void *p, size_t size);

#endif
