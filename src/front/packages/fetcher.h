/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetcher.h - The cell in which packages are resolved and built, and the program in it. For
 * install.c.
 *
 * It is a cell of the image that the packages are for: packages that are chosen and built there fit
 * the interpreter and the libc that will load them.
 */
#ifndef CAISSON_FRONT_PACKAGES_FETCHER_H
#define CAISSON_FRONT_PACKAGES_FETCHER_H

#include <jansson.h>

#include "front/packages/requirement.h"

struct command_line;
struct install;
struct refusal;
struct sandbox_spec;

#define FETCHER_SITE "/tmp/site" /* as in src/guest/fetch */

/* fetcher_spec() - Limits and network. Free it with sandbox_spec_free(), or give it to a sandbox.
 */
void fetcher_spec(const struct install *in, struct sandbox_spec *ret);

/* fetcher_may() - Whether there can be one with this image. 0, or -1 with @why. */
int fetcher_may(const struct install *in, struct refusal *why);

/* fetcher_program() - The program that the image must have: python3, node. */
const char *fetcher_program(enum ecosystem eco);

/* fetcher_line() - The program and its task in in->fetcher. 0, or -1 with @why. */
int fetcher_line(const struct install *in, struct command_line *ret, struct refusal *why);

#endif
