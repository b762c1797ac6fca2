/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mount_use.h - The mounts of a sandbox: the field `mounts` of a SandboxSpec.
 *
 * A list of places in the cell, each with or without :ro or :rw. Without the field a sandbox has
 * all mounts that the policy allows the caller. The set is fixed when the sandbox is made, and is
 * in its record with modes: so the next front, and a cell that replaces a lost one, have the same.
 */
#ifndef CAISSON_FRONT_WORKSPACES_MOUNT_USE_H
#define CAISSON_FRONT_WORKSPACES_MOUNT_USE_H

#include <jansson.h>
#include <stdbool.h>

#include "front/support/mounts.h"

struct admission;
struct json;
struct refusal;

struct mount_use {
	struct mount_set set;
	/* The first place of the request that the operator does not have in that mode; or empty. */
	struct mount_word missing;
};

/* mount_use_default() - All mounts that the policy allows @owner: for a request without the field.
 */
void mount_use_default(const struct admission *a, const char *owner, struct mount_use *ret);

/*
 * mount_use_parse() - @value: of the field, or NULL. The policy is checked later, and after that
 * whether the mount exists (mount_use_admit()): an answer must not reveal mounts of other owners.
 * 0, or -1 with @why.
 */
int mount_use_parse(const struct admission *a, const char *owner, const json_t *value,
		    struct mount_use *ret, struct refusal *why);

/* mount_use_admit() - After the policy: whether each named mount exists. 0, or -1 with @why. */
int mount_use_admit(const struct admission *a, const char *owner, const struct mount_use *u,
		    struct refusal *why);

bool mount_use_equal(const struct mount_use *a, const struct mount_use *b);
/* mount_use_json() - A list of places, each with its mode. */
void mount_use_json(const struct admission *a, const struct mount_use *u, struct json *j);

/* mounts_pool() - The policy has changed: set the mounts of cells of the pool. */
void mounts_pool(struct admission *a);

#endif
