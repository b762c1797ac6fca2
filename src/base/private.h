/* SPDX-License-Identifier: Apache-2.0 */
/* private.h - Files that only their owner may read or change, and memory that holds secrets. */
#ifndef CAISSON_BASE_PRIVATE_H
#define CAISSON_BASE_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct err;

/*
 * private_check() - Whether it is a plain file of @uid or root that no other user can change; with
 * @secret nor read. 0, or a negative errno with a message that names the fix and not the path.
 */
int private_check(int fd, bool secret, uid_t uid, struct err *e);
/* private_open() - For reading: a secret file of ours. Return: descriptor, or as private_check().
 */
int private_open(const char *path, struct err *e);

/* private_alloc() - Zeroed memory, not in core dumps, if possible not in swap; or NULL. */
void *private_alloc(size_t size);
/* private_free() - Wiped first. @p may be NULL. */
void private_free(void *p, size_t size);

#endif
