/* SPDX-License-Identifier: Apache-2.0 */
/*
 * near.h - The known word that is nearest to a wrong one.
 *
 *	struct near n = near_word(arg, len);
 *
 *	for (...)
 *		near_try(&n, rows[i].name);
 *	return err_say(e, -EINVAL, "unknown option '%s'%s --help lists them", arg, near_hint(&n));
 */
#ifndef CAISSON_BASE_NEAR_H
#define CAISSON_BASE_NEAR_H

#include <stddef.h>

struct near {
	const char *word;
	size_t len;
	const char *found; /* the nearest so far; NULL: none is near enough */
	size_t distance;
	char hint[64];
};

struct near near_word(const char *word, size_t len);

/* near_try() - Compare with a known word, which is borrowed; NULL is ignored. */
void near_try(struct near *n, const char *name);

/* near_hint() - The text after the wrong word: ": did you mean 'x'?", or ";". */
const char *near_hint(struct near *n);

#endif
