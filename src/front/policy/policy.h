/* SPDX-License-Identifier: Apache-2.0 */
/* policy.h - The policy in force. main/policy_load.c reads it and replaces it. */
#ifndef CAISSON_FRONT_POLICY_POLICY_H
#define CAISSON_FRONT_POLICY_POLICY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "front/policy/rules.h"

struct policy_now {
	struct rules *rules;  /* in force; NULL: there is none, and no --policy */
	struct buf text;      /* of it, until the keeper has it */
	uid_t uid;            /* whose file it may be, besides root's */
	uint64_t loaded_ms;   /* since 1970 */
	bool stale;           /* the file as it is now was refused */
	struct toml_at wrong; /* where; line 0: it could not be read */
	struct err broken; /* between policy_load() and policy_open(): what is wrong with the file */
};

#endif
