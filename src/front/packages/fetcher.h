/* SPDX-License-Identifier: Apache-2.0 */
/* fetcher.h - The cell in which packages are resolved and built, and the program in it. For install.c. */
#ifndef CAISSON_FRONT_PACKAGES_FETCHER_H
#define CAISSON_FRONT_PACKAGES_FETCHER_H

#include "front/packages/requirement.h"

struct command_line;
struct err;
struct front;
struct install;
struct refusal;
struct sandbox_spec;

#define FETCHER_SITE "/tmp/site" /* as in src/guest/fetch/fetch.py */

/* fetcher_spec() - Limits and network. Free it with sandbox_spec_free(), or give it to a sandbox. */
void fetcher_spec(const struct install *in, struct sandbox_spec *ret);

/* fetcher_check() - Whether the configured index can be a fetcher's network. 0 or -EINVAL. */
int fetcher_check(const struct front *f, struct err *e);

/* fetcher_line() - The program and what it is to do. 0, or -1 with @why. */
int fetcher_line(const struct install *in, struct command_line *ret, struct refusal *why);

#endif
