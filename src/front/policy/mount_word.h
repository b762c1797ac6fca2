/* SPDX-License-Identifier: Apache-2.0 */
/* mount_word.h - A mount of the operator's as requests and the policy name it: PLACE, PLACE:ro or
 * PLACE:rw. Pure. */
#ifndef CAISSON_FRONT_POLICY_MOUNT_WORD_H
#define CAISSON_FRONT_POLICY_MOUNT_WORD_H

#include <stdbool.h>

#include "wire/warden.h"

enum mount_mode { MOUNT_ANY, MOUNT_RO, MOUNT_RW };
extern const char *const mount_suffix[]; /* of each mode: "", ":ro", ":rw" */

/* A place as requests and the policy write it. */
struct mount_word {
	char place[CELL_DST_MAX];
	enum mount_mode mode;
};

/* mount_word_parse() - PLACE, PLACE:ro or PLACE:rw. False: it is none. Pure. */
bool mount_word_parse(const char *text, struct mount_word *ret);

#endif
