/* SPDX-License-Identifier: Apache-2.0 */
/* wild.h - Patterns of names, as a shell has them. */
#ifndef CAISSON_BASE_WILD_H
#define CAISSON_BASE_WILD_H

#include <stdbool.h>
#include <stddef.h>

/* wild_match() - Whether @text matches; `*` is any text, `?` any byte. Pure. */
bool wild_match(const char *pattern, const char *text);
/* wild_match_len() - The same of @n and @len bytes. */
bool wild_match_len(const char *pattern, size_t n, const char *text, size_t len);

#endif
