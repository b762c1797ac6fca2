/* SPDX-License-Identifier: Apache-2.0 */
/*
 * package_rules.h - Which packages may be installed: the operator's lists, pins, and names that
 * look like others.
 *
 * They judge the names of a request before anything is fetched, and every package of the closure
 * before it is installed. Pure functions over the configuration.
 */
#ifndef CAISSON_FRONT_PACKAGES_RULES_H
#define CAISSON_FRONT_PACKAGES_RULES_H

#include <jansson.h>
#include <stdbool.h>

#include "front/packages/requirement.h"

struct config;
struct refusal;

/* rules_request() - Whether a request may name these @n packages: by the operator's lists, and no
 * mistaken name. Return: 0, or -1 with @ret. */
int rules_request(const struct config *c, enum ecosystem eco, const struct requirement *asked,
		  size_t n, struct refusal *ret);

/*
 * rules_closure() - Whether all fetched packages of a closure (closure.h) may be installed: by the
 * operator's lists, their number, and the pins.
 * @pins: "name==version" to a hash, or NULL: no pins
 * Return: 0, or -1 with @ret.
 */
int rules_closure(const struct config *c, const json_t *closure, const json_t *pins,
		  struct refusal *ret);

/* rules_lookalike() - Whether @name, which is canonical, was probably typed by mistake for @ret: a
 * known mistake, or like a popular name that is not among the @n names of the request, @asked. */
bool rules_lookalike(enum ecosystem eco, const char *name, const struct requirement *asked,
		     size_t n, char ret[PACKAGE_NAME_MAX + 1]);

#endif
