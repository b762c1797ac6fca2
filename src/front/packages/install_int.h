/* SPDX-License-Identifier: Apache-2.0 */
/*
 * install_int.h - The stages of an install, each of which hands it on to the next: install.c (with
 * install_words.c), fetcher.c (fetcher.h), fetch_output.c, install_keep.c, install_end.c.
 */
#ifndef CAISSON_FRONT_PACKAGES_INSTALL_INT_H
#define CAISSON_FRONT_PACKAGES_INSTALL_INT_H

#include <jansson.h>
#include <stddef.h>

#include "front/packages/install.h"
#include "front/support/refusal.h"

/* ---- install_words.c: the words */

/* install_take() - Read and judge the request; fills first, request, requirements, exact. 0, or -1
 * with @why. */
int install_take(struct install *in, const json_t *requirements, const char *version,
		 struct refusal *why);
/*
 * install_beside() - The tree depends on more than its request. The packages of @s constrain it;
 * where they forbid the request, the request and all earlier ones of @s, as far as they name other
 * packages, are resolved together. in->context is a hash of both, taken before any code of a
 * package runs: the tree is found again by it. 0, or -1 without memory. install_widen() - All
 * requests were resolved together: the tree is for all of these words. 0, or -1 without memory.
 */
int install_beside(struct install *in, const struct sandbox *s, struct refusal *why);
int install_widen(struct install *in);

/* ---- fetch_output.c: the output of the fetcher, and its end. Hands on to install_keep(). */

extern const struct command_ops fetch_output_ops; /* of in->command, whose owner is the install */

/* ---- install_keep.c: the finished tree */

/* install_keep() - Have it packed and kept; then install_end(), or install_fail(). */
void install_keep(struct install *in);
/* install_keep_stop() - Nothing of this is called any more. Idempotent, also before it began. */
void install_keep_stop(struct install *in);

/* ---- install_end.c: the end. The first call counts; the loop concludes the install later, and
 * frees it. */

void install_end(struct install *in); /* in->tree is the result */
void install_fail(struct install *in, const struct refusal *why);
void install_fail_text(struct install *in, enum refusal_kind kind, const char *code,
		       const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

/* install_no_tool() - The image has no installer; @fmt names what is missing. */
void install_no_tool(struct install *in, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* install_free() - Of an install that has not begun, in install_begin(). */
void install_free(struct install *in);

#endif
