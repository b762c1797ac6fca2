/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mount_use.h - Which of the operator's mounts a sandbox has: the member `mounts` of a SandboxSpec.
 *
 * A list of places in the cell, each with or without :ro or :rw. Without the member it is all that
 * the policy lets the caller have. A set is fixed when a sandbox is made, and is in its record with
 * modes: so the next front, or a cell that takes the place of one that was lost, has the same.
 */
#ifndef CAISSON_FRONT_WORKSPACES_MOUNT_USE_H
#define CAISSON_FRONT_WORKSPACES_MOUNT_USE_H

#include <jansson.h>
#include <stdbool.h>

#include "front/policy/mount_word.h"
#include "front/support/mounts.h"

struct front;
struct json;
struct refusal;

struct mount_use {
	struct mount_set set;
	/* The first that was named and that the operator does not have so; an empty place: there is
	 * none. */
	struct mount_word missing;
};

/* mount_use_default() - What @owner gets who names none: all that the policy allows. */
void mount_use_default(const struct front *f, const char *owner, struct mount_use *ret);

/*
 * mount_use_parse() - @value: of the member; NULL for none. Whether the policy allows it is asked
 * later, and only then whether it is there (mount_use_admit()): the answer to a name must not tell
 * of mounts that are others'. 0, or -1 with @why.
 */
int mount_use_parse(const struct front *f, const char *owner, const json_t *value,
		    struct mount_use *ret, struct refusal *why);

/* mount_use_admit() - After the policy: everything that was named is there. 0, or -1 with @why. */
int mount_use_admit(const struct front *f, const char *owner, const struct mount_use *u,
		    struct refusal *why);

bool mount_use_equal(const struct mount_use *a, const struct mount_use *b);
/* mount_use_json() - A list of places, each with its mode. */
void mount_use_json(const struct front *f, const struct mount_use *u, struct json *j);

/* mounts_pool() - The policy is another one: what cells of the pool have from now on. */
void mounts_pool(struct front *f);

#endif
