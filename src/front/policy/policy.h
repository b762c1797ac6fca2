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

struct front;

struct policy_now {
	/* Sandboxes that @owner runs now, and executions, commands and processes; NULL: of all
	 * owners. The sandboxes set it. */
	void (*count)(const struct front *f, const char *owner, size_t *ret_sandboxes,
		      size_t *ret_executions);
	struct rules *rules;  /* in force; NULL: there is none, and no --policy */
	struct buf text;      /* of it, until the keeper has it */
	uid_t uid;            /* whose file it may be, besides root's */
	uint64_t loaded_ms;   /* since 1970 */
	bool stale;           /* the file as it is now was refused */
	struct toml_at wrong; /* where; line 0: it could not be read */
	struct err broken; /* between policy_load() and policy_open(): what is wrong with the file
			    */
};

#endif
