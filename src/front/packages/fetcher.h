/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetcher.h - The cell in which packages are resolved and built, and the program in it: the second
 * stage of an install (install_int.h).
 *
 * It is a cell of the image that the packages are for: packages that are chosen and built there fit
 * the interpreter and the libc that will load them.
 */
#ifndef CAISSON_FRONT_PACKAGES_FETCHER_H
#define CAISSON_FRONT_PACKAGES_FETCHER_H

#include "front/packages/requirement.h"

struct install;
struct refusal;

#define FETCHER_SITE "/tmp/site" /* as in src/guest/fetch */

/* fetcher_program() - The program that the image must have: python3, node. */
const char *fetcher_program(enum ecosystem eco);

/*
 * fetcher_start() - Make the sandbox, and run the program in it: fetch_output_ops has what follows.
 * 0, or -1 with @why. fetcher_stop() - End both; idempotent, also before the start.
 */
int fetcher_start(struct install *in, struct refusal *why);
void fetcher_stop(struct install *in);

#endif
