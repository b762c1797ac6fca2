/* SPDX-License-Identifier: Apache-2.0 */
/* install_int.h - Functions that install.c, install_words.c, fetch_output.c and outcome.c share. */
#ifndef CAISSON_FRONT_PACKAGES_INSTALL_INT_H
#define CAISSON_FRONT_PACKAGES_INSTALL_INT_H

#include <jansson.h>
#include <stddef.h>

#include "front/packages/install.h"
#include "front/support/refusal.h"

/* ---- install.c: the end. The first call counts; the loop calls done later. */

void install_fail(struct install *in, const struct refusal *why);
void install_fail_text(struct install *in, enum refusal_kind kind, const char *code,
		       const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

/* install_no_tool() - The image has no installer; @fmt names what is missing. */
void install_no_tool(struct install *in, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- install_words.c: the words */

/* install_take() - Read and judge the request; fills first, request, requirements, exact. 0, or -1
 * with @why. */
int install_take(struct install *in, const json_t *requirements, const char *version,
		 struct refusal *why);
/* install_constrain() - The packages of @s constrain the new tree. */
void install_constrain(struct install *in, const struct sandbox *s);
/*
 * install_recall() - The request and all earlier ones of @s, where they name other packages: what
 * is resolved when the constraints forbid the request. install_widen() - That was resolved: the
 * tree is for all of these words. 0, or -1 without memory.
 */
void install_recall(struct install *in, const struct sandbox *s);
int install_widen(struct install *in);

/* install_rate() - Whether the owner may have something fetched now; counts it. 0, or -1 with
 * @why. */
int install_rate(struct packages *packages, const char *owner, struct refusal *why);

/* ---- fetch_output.c: the output of the fetcher, in pieces of any size. May fail the install. */

void fetch_output_feed(struct install *in, const char *data, size_t len);

/* ---- outcome.c: to the ledger and the metrics, when it is over. */

void outcome_record(const struct install *in);

#endif
