/* SPDX-License-Identifier: Apache-2.0 */
/* egress_rules.h - The whole `egress` of a sandbox: from a request's list to the gate's rules. */
#ifndef CAISSON_FRONT_EGRESS_RULES_H
#define CAISSON_FRONT_EGRESS_RULES_H

#include <jansson.h>
#include <stddef.h>

#include "wire/gate.h"

struct err;

struct egress_rules {
	struct gate_rule rules[GATE_RULES_MAX];
	size_t n_rules;
	uint16_t ports[GATE_PORTS_MAX]; /* each once, in order */
	size_t n_ports;
};

/*
 * egress_list() - The canonical list: each entry in its one form, each once, sorted. @list: array
 * of strings, NULL, or null. Return: a new array, or NULL if it is empty; NULL with @e for an
 * error.
 */
json_t *egress_list(const json_t *list, struct err *e);

/* egress_rules() - From a canonical list. 0, or -EINVAL: too many rules or ports. */
int egress_rules(const json_t *list, struct egress_rules *ret, struct err *e);

#endif
