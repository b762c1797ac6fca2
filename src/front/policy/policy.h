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
	struct rules *rules;  /* in force; NULL: there is no --policy */
	struct buf text;      /* of the rules, until the keeper has it */
	uid_t uid;            /* owner that the file may have, besides root */
	uint64_t loaded_ms;   /* since 1970 */
	bool stale;           /* the present file was refused */
	struct toml_at wrong; /* place of its error; line 0: it could not be read */
	struct err broken;    /* its error, between policy_load() and policy_open() */
};

#endif
