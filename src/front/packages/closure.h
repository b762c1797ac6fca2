/* SPDX-License-Identifier: Apache-2.0 */
/*
 * closure.h - What the fetcher says would be installed, made fit to be judged and shown.
 *
 * The cell in which it was found out may have run a stranger's build. So nothing is passed on as it
 * came: each member is checked, and only what is known here is kept.
 */
#ifndef CAISSON_FRONT_PACKAGES_CLOSURE_H
#define CAISSON_FRONT_PACKAGES_CLOSURE_H

#include <jansson.h>

#include "front/packages/requirement.h"

#define CLOSURE_MAX 2000u
#define CLOSURE_NEEDS_MAX 200u

/*
 * closure_take() - An array of {name, version, hash, built, needs}, names canonical, from what was
 * said. NULL: it makes no sense, or there is no memory. Pure.
 */
json_t *closure_take(enum ecosystem eco, const json_t *said);

/* closure_version() - Of a package in it, or NULL. */
const char *closure_version(const json_t *closure, const char *name);

#endif
