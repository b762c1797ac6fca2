/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox_path.h - A file here or in a sandbox, as arguments name it: PATH or NAME:PATH. */
#ifndef CAISSON_REMOTE_SANDBOX_PATH_H
#define CAISSON_REMOTE_SANDBOX_PATH_H

#include <stdbool.h>
#include <stddef.h>

struct err;

#define SANDBOX_NAME_MAX 64

struct sandbox_path {
	bool remote;
	char name[SANDBOX_NAME_MAX + 1]; /* of the sandbox; empty when it is here */
	const char *path;                /* borrowed from what was parsed; never empty */
};

/* sandbox_name_valid() - Whether it is a name: letters, digits, '.', '_', '-'. */
bool sandbox_name_valid(const char *s, size_t len);

/* sandbox_name_check() - The same with a message. 0 or -EINVAL. */
int sandbox_name_check(const char *s, struct err *e);

/*
 * sandbox_path_parse() - The text before the first colon is the sandbox, unless it has a slash:
 * "./a:b" is a file here. "NAME:" is the sandbox's working directory. 0 or -EINVAL.
 */
int sandbox_path_parse(const char *arg, struct sandbox_path *ret, struct err *e);

/* sandbox_path_base() - The last part of a path, without trailing slashes: @len bytes. Of "/" it is
 * empty. */
const char *sandbox_path_base(const char *path, size_t *len);

#endif
