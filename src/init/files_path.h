/* SPDX-License-Identifier: Apache-2.0 */
/* files_path.h - Paths of a request: the directory and the name in it. */
#ifndef CAISSON_INIT_FILES_PATH_H
#define CAISSON_INIT_FILES_PATH_H

#include <stdbool.h>

#include "wire/files.h"

struct place {
	char dir[FILES_PATH_MAX]; /* "." when the path is only a name */
	char name[256];
	bool slash; /* the path ended with one: only a directory will do */
};

/* place_find() - Split @path. 0; EINVAL for a path without a name in it ("/", "..", "");
 * ENAMETOOLONG. */
int place_find(struct place *p, const char *path);

/* place_open() - The directory, made with those above it when @parents. Descriptor (O_PATH) or
 * -errno. */
int place_open(const struct place *p, bool parents);

/* dirs_make() - A directory and those above it, as far as they are missing. 0 or a positive errno.
 */
int dirs_make(const char *path);

/* link_read() - Where a link leads, or NULL. @buf: FILES_PATH_MAX bytes. */
const char *link_read(int dirfd, const char *name, char *buf);

#endif
