/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mounts.h - Directories of the host that the operator has for sandboxes (--mount).
 *
 * No caller can name a path of the host: they are opened before the jail, with the starter's
 * rights, and the front holds descriptors. What can be written to has its protected names
 * (cell/protect.h), unless the operator says otherwise. Which of them a sandbox has is in
 * mount_use.h.
 */
#ifndef CAISSON_FRONT_WORKSPACES_MOUNTS_H
#define CAISSON_FRONT_WORKSPACES_MOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/warden.h"

struct cell_spec;
struct err;
struct front;

#define MOUNTS_MAX 5

/* Some of them: a bit for each row of struct mounts. Two sets with the same bits are the same cell.
 */
struct mount_set {
	uint32_t has;
	uint32_t ro; /* of those that it has: which can only be read */
};

struct mounts {
	size_t n;
	int fd[MOUNTS_MAX];
	struct cell_mount row[MOUNTS_MAX];
	struct mount_set pooled; /* what cells of the pool have: what the policy gives to each
				    caller */
};

/* mounts_parse() - SOURCE:PLACE[:ro|:rw|:rw-unprotected]. @ret_len: of the source. 0 or -EINVAL.
 * Pure. */
int mounts_parse(const char *text, struct cell_mount *ret, size_t *ret_len, struct err *e);

/* mounts_open() - Before the jail. 0 or -errno with a message that names the mount. */
int mounts_open(struct front *f, struct err *e);

/* mounts_add() - Add those of @set to a cell's. Return: how many descriptors were put into @fds. */
size_t mounts_add(const struct front *f, const struct mount_set *set, struct cell_spec *spec,
		  int *fds);

bool mount_set_equal(const struct mount_set *a, const struct mount_set *b);

#endif
