/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tar_whole.h - What an archive of a workspace has beside files: second names, and attributes.
 *
 * For the worker of a file call, which ends with the call: nothing here is freed.
 */
#ifndef CAISSON_INIT_TAR_WHOLE_H
#define CAISSON_INIT_TAR_WHOLE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* Files with more than one name, and the first of them that was seen. Begins as zero. */
struct tar_names {
	struct tar_name {
		dev_t dev;
		ino_t ino;
		char *path;
	} * table;
	size_t n, size; /* of the table: a power of two */
};

/* tar_names_find() - The first name of this file; @path itself when it is the first. NULL without memory. */
const char *tar_names_find(struct tar_names *names, const struct stat *st, const char *path);

/*
 * tar_xattrs() - Attributes of the user's (user.*) as pax records. Return: their length.
 * @ret_cut: there are more than fit in @room
 */
size_t tar_xattrs(int fd, char *out, size_t room, bool *ret_cut);

#endif
