/* SPDX-License-Identifier: Apache-2.0 */
/* rule_rows.h - The table of rules: where each may stand, what it takes. Between rules.c, which has
 * it, and rules_read.c. */
#ifndef CAISSON_FRONT_POLICY_RULE_ROWS_H
#define CAISSON_FRONT_POLICY_RULE_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "front/policy/rules.h"

enum where { IN_DAEMON = 1u << 0, IN_OWNER = 1u << 1 };

struct rule_row {
	const char *name;
	unsigned int where;
	uint64_t min, max;         /* of a number */
	bool (*check)(char *word); /* of each word of a list; may bring it into its one form */
	const char *word;          /* what check asks for */
};

extern const struct rule_row rule_rows[RULE_MAX_];

#endif
