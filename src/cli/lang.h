/* SPDX-License-Identifier: Apache-2.0 */
/* lang.h - The languages that `caisson run` knows, and how their programs are started. */
#ifndef CAISSON_CLI_LANG_H
#define CAISSON_CLI_LANG_H

#include <stddef.h>

struct err;

#define LANG_PREFIX_MAX 6

struct lang {
	const char *name;
	const char *suffix;
	const char *inline_prefix[LANG_PREFIX_MAX]; /* then the code, then after_code if set, then
						       arguments */
	const char *after_code; /* fills $0 where the interpreter takes it from there */
	const char *file_prefix[LANG_PREFIX_MAX]; /* then the path, then arguments */
};

/* lang_find() - By name; NULL with a message that lists what there is. */
const struct lang *lang_find(const char *name, struct err *e);

/* lang_of_file() - By suffix; NULL when no language claims it. */
const struct lang *lang_of_file(const char *path);

#endif
