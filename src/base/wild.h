/* SPDX-License-Identifier: Apache-2.0 */
/* wild.h - Patterns of names, as a shell has them. */
#ifndef CAISSON_BASE_WILD_H
#define CAISSON_BASE_WILD_H

#include <stdbool.h>

/* wild_match() - `*` is any text, `?` any byte; everything else is itself. All of @text has to
 * match. Pure. */
bool wild_match(const char *pattern, const char *text);

#endif
