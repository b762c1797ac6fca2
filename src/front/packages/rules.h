/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules.h - Which packages may be installed: the operator's lists, pins, and names that look like
 * others.
 *
 * Asked for what somebody wants before anything is fetched, and again for every package of the
 * closure before it is installed. Pure functions over the configuration.
 */
#ifndef CAISSON_FRONT_PACKAGES_RULES_H
#define CAISSON_FRONT_PACKAGES_RULES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "front/packages/requirement.h"

struct config;
struct refusal;

/*
 * rules_name() - Whether a package of this name may be.
 * @by: the package that needs it; NULL: somebody asked for it
 * Return: 0, or -1 with @ret.
 */
int rules_name(const struct config *c, enum ecosystem eco, const char *name, const char *by,
	       struct refusal *ret);

/*
 * rules_closure() - The same for all of a closure (closure.h), its number, and its pins.
 * @pins: "name==version" to a hash, or NULL: there are none
 */
int rules_closure(const struct config *c, enum ecosystem eco, const json_t *closure,
		  const json_t *pins, struct refusal *ret);

/* rules_lookalike() - The popular name that this one is a misspelling of, or NULL. */
const char *rules_lookalike(enum ecosystem eco, const char *name);

/* Popular names, each list ends with NULL (popular.c). */
extern const char *const popular_names[ECO_MAX_][512];

#endif
