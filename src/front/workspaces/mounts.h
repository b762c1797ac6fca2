/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mounts.h - Directories of the host that the operator has mounted into every sandbox (--mount).
 *
 * No caller can name one: they are opened before the jail, with the starter's rights, and the front holds
 * descriptors. What can be written to has its protected names (cell/protect.h), unless the operator says otherwise.
 */
#ifndef CAISSON_FRONT_WORKSPACES_MOUNTS_H
#define CAISSON_FRONT_WORKSPACES_MOUNTS_H

#include <stddef.h>

#include "wire/warden.h"

struct cell_spec;
struct err;
struct front;

#define MOUNTS_MAX 5

struct mounts {
	size_t n;
	int fd[MOUNTS_MAX];
	struct cell_mount row[MOUNTS_MAX];
};

/* mounts_parse() - SOURCE:PLACE[:ro|:rw|:rw-unprotected]. @ret_len: of the source. 0 or -EINVAL. Pure. */
int mounts_parse(const char *text, struct cell_mount *ret, size_t *ret_len, struct err *e);

/* mounts_open() - Before the jail. 0 or -errno with a message that names the mount. */
int mounts_open(struct front *f, struct err *e);

/* mounts_add() - Add them to a cell's. Return: how many descriptors were put into @fds. */
size_t mounts_add(const struct front *f, struct cell_spec *spec, int *fds);

#endif
