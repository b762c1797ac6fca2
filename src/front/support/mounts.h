/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mounts.h - Directories of the host that the operator mounts into sandboxes (--mount).
 *
 * No caller can name a path of the host: the directories are opened before the jail, with the
 * starter's rights, and the front holds descriptors. Names in a writable one are protected
 * (cell/protect.h), unless the operator chooses otherwise. spec/mount_use.h decides which of them a
 * sandbox has.
 */
#ifndef CAISSON_FRONT_SUPPORT_MOUNTS_H
#define CAISSON_FRONT_SUPPORT_MOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/warden.h"

struct cell_spec;
struct err;

#define MOUNTS_MAX 5

/* Some of them: a bit for each row of struct mounts. */
struct mount_set {
	uint32_t has;
	uint32_t ro; /* those of them that are read-only */
};

struct mounts {
	size_t n;
	int fd[MOUNTS_MAX];
	struct cell_mount row[MOUNTS_MAX];
	struct mount_set pooled; /* of cells of the pool: what the policy gives to each caller */
};

/* A mount as requests and the policy name it. */
enum mount_mode { MOUNT_ANY, MOUNT_RO, MOUNT_RW };
extern const char *const mount_suffix[]; /* of each mode: "", ":ro", ":rw" */

struct mount_word {
	char place[CELL_DST_MAX];
	enum mount_mode mode;
};

/* mount_word_parse() - PLACE, PLACE:ro or PLACE:rw. False: it has another form. Pure. */
bool mount_word_parse(const char *text, struct mount_word *ret);

/* mounts_parse() - SOURCE:PLACE[:ro|:rw|:rw-unprotected]. @ret_len: of the source. 0 or -EINVAL.
 * Pure. */
int mounts_parse(const char *text, struct cell_mount *ret, size_t *ret_len, struct err *e);

/*
 * mounts_open() - Before the jail: open each of @texts, which ends with NULL. @spec: of every cell,
 * which has to have room for all of them. 0 or -errno with a message that names the mount.
 */
int mounts_open(struct mounts *m, const char *const *texts, const struct cell_spec *spec,
		struct err *e);

/* mounts_add() - Add those of @set to a cell. Return: how many descriptors were put into @fds. */
size_t mounts_add(const struct mounts *m, const struct mount_set *set, struct cell_spec *spec,
		  int *fds);

bool mount_set_equal(const struct mount_set *a, const struct mount_set *b);

#endif
