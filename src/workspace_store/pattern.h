/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pattern.h - Which paths of a workspace a sandbox sees. Pure.
 *
 * A pattern is a path with wildcards: `*` and `?` stay in one part of it, `**` is any number of
 * parts. A pattern without a slash matches at every depth (`*.pem`), one with a slash from the top
 * (`secrets/keys`, `/notes`). A pattern that matches a directory matches everything in it. A path
 * is hidden if a deny matches it, or if there are allows and none of them matches it.
 */
#ifndef CAISSON_WORKSPACE_PATTERN_H
#define CAISSON_WORKSPACE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

struct err;

#define PATTERN_MAX 256u /* with its NUL */
#define PATTERN_RULES_MAX 64u

struct pattern_rules {
	size_t n;
	bool has_allow;
	struct pattern_rule {
		bool allow;
		char text[PATTERN_MAX];
	} rule[PATTERN_RULES_MAX];
};

/* pattern_ok() - Whether this can be a pattern: not empty, no "..", no control character. */
bool pattern_ok(const char *text, size_t len);

/* pattern_match() - @path, or a directory above it. */
bool pattern_match(const char *pattern, const char *path);

/* pattern_parse() - Lines: '+' and an allow, '-' and a deny. 0 or -EINVAL. */
int pattern_parse(const char *text, size_t len, struct pattern_rules *ret, struct err *e);
bool pattern_visible(const struct pattern_rules *r, const char *path);

#endif
