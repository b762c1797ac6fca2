/* SPDX-License-Identifier: Apache-2.0 */
/*
 * closure.h - The packages that a request leads to, as the fetcher reports them.
 *
 * The fetcher's cell may have run a stranger's build. So closure_take() checks each member, and
 * keeps the known ones only. The build may also have named CLOSURE_MAX packages: everything that is
 * done to a closure looks at each package once, or an installation would hold up the front.
 */
#ifndef CAISSON_FRONT_PACKAGES_CLOSURE_H
#define CAISSON_FRONT_PACKAGES_CLOSURE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "front/packages/requirement.h"

struct json;

#define CLOSURE_MAX 5000u
#define CLOSURE_NEEDS_MAX 200u

/*
 * closure_take() - An array of {name, version, hash, built, needs} and perhaps image or replaces,
 * names canonical, from the fetcher's report. NULL: the report is malformed, or there is no memory.
 * Pure.
 *
 * image (true): a package that the image has and the others use; nothing of it is fetched.
 * replaces: the version that the image has, which the fetched package hides.
 */
json_t *closure_take(enum ecosystem eco, const json_t *said);

/* closure_text() - A member of a package, or NULL. */
const char *closure_text(const json_t *p, const char *key);
/* closure_find() - The package @name; closure_version() - its version. NULL: no such package. */
const json_t *closure_find(const json_t *closure, const char *name);
const char *closure_version(const json_t *closure, const char *name);
/* closure_pins() - Add the versions that the fetched packages of @closure were resolved with, by
 * name, except names that @pins has. Nothing was fetched: none. */
void closure_pins(const json_t *closure, json_t *pins);
/* closure_of_image() - Whether the package is the image's own. */
bool closure_of_image(const json_t *p);
/* closure_fetched() - The number of packages that are not. */
size_t closure_fetched(const json_t *closure);
/* closure_members() - Write a package as members of an object. */
void closure_members(const json_t *p, struct json *j);

#endif
