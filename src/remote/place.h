/* SPDX-License-Identifier: Apache-2.0 */
/* place.h - A file here or in a sandbox, as people name it for `caisson cp`: PATH or NAME:PATH. */
#ifndef CAISSON_REMOTE_PLACE_H
#define CAISSON_REMOTE_PLACE_H

#include <stdbool.h>
#include <stddef.h>

struct err;

#define PLACE_NAME_MAX 64

struct place {
	bool remote;
	char name[PLACE_NAME_MAX + 1]; /* of the sandbox; empty when it is here */
	const char *path;              /* borrowed from what was parsed; never empty */
};

/* place_name_valid() - Whether a sandbox may be called so: letters, digits, '.', '_', '-'. */
bool place_name_valid(const char *s, size_t len);

/* place_check_name() - The same, with a line that says what a name looks like. 0 or -EINVAL. */
int place_check_name(const char *s, struct err *e);

/*
 * place_parse() - What stands before the first colon is the sandbox, unless it holds a slash:
 * "./a:b" is a file here. "NAME:" is the sandbox's working directory. 0 or -EINVAL.
 */
int place_parse(const char *arg, struct place *ret, struct err *e);

/* place_base() - The last part of a path, without trailing slashes; @len is set. Of "/" it is
 * empty. */
const char *place_base(const char *path, size_t *len);

#endif
