/* SPDX-License-Identifier: Apache-2.0 */
/*
 * closure.h - The packages that a request leads to, as the fetcher reports them.
 *
 * The fetcher's cell may have run a stranger's build. So closure_take() checks each member, and
 * keeps the known ones only.
 */
#ifndef CAISSON_FRONT_PACKAGES_CLOSURE_H
#define CAISSON_FRONT_PACKAGES_CLOSURE_H

#include <jansson.h>

#include "front/packages/requirement.h"

struct json;

#define CLOSURE_MAX 2000u
#define CLOSURE_NEEDS_MAX 200u

/*
 * closure_take() - An array of {name, version, hash, built, needs}, names canonical, from the
 * fetcher's report. NULL: the report is malformed, or there is no memory. Pure.
 */
json_t *closure_take(enum ecosystem eco, const json_t *said);

/* closure_text() - A member of a package, or NULL. */
const char *closure_text(const json_t *p, const char *key);
/* closure_version() - Of the package @name, or NULL. */
const char *closure_version(const json_t *closure, const char *name);
/* closure_json() - Write a package as an object. @language: NULL leaves that member out. */
void closure_json(const json_t *p, const char *language, struct json *j);

#endif
