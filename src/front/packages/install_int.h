/* SPDX-License-Identifier: Apache-2.0 */
/* install_int.h - What the parts of an install say to each other: install_words.c, fetch_output.c,
 * pack.c, outcome.c, install.c. */
#ifndef CAISSON_FRONT_PACKAGES_INSTALL_INT_H
#define CAISSON_FRONT_PACKAGES_INSTALL_INT_H

#include <jansson.h>
#include <stddef.h>

#include "front/packages/install.h"
#include "front/sandbox/execution.h"

/* ---- install.c: the end. The first one counts; done is called later, from the loop. */

void install_end(struct install *in);
void install_fail(struct install *in, const struct refusal *why);
void install_fail_text(struct install *in, int status, const char *code, const char *hint,
		       const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* install_no_tool() - The image lacks what installs packages: @fmt says what. */
void install_no_tool(struct install *in, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- install_words.c: the words */

/* install_refuse() - Fill @r for the field that names packages. Return: -1. */
int install_refuse(struct refusal *r, int status, const char *code, const char *hint,
		   const char *text);
/* install_take() - Read and judge the request; fills first, request, requirements, exact. 0, or -1
 * with @why. */
int install_take(struct install *in, const json_t *requirements, const char *version,
		 struct refusal *why);
/* install_constrain() - What @s has already the new tree has to agree with. */
void install_constrain(struct install *in, const struct sandbox *s);

/* ---- rate.c: may this owner have something fetched now? 0, or -1 with @why. Counts it. */

int rate_take(struct front *f, const char *owner, struct refusal *why);

/* ---- fetch_output.c: what the fetcher says, in whatever pieces. May fail the install. */

void fetch_output_feed(struct install *in, const char *data, size_t len);

/* ---- pack.c: the tree from the fetcher's cell to the package store. Ends or fails the install. */

void pack_begin(struct install *in);

/* ---- outcome.c: into the ledger and the metrics, when it is over. */

void outcome_record(const struct install *in);

#endif
