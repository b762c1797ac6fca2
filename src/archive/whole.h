/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whole.h - The parts of a tree that only a whole archive has: second names of files, and
 * attributes.
 *
 * For processes that end with the archive (a file call in a cell, a job of the workspace store):
 * the names are allocated and never freed.
 */
#ifndef CAISSON_ARCHIVE_WHOLE_H
#define CAISSON_ARCHIVE_WHOLE_H

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

/*
 * tar_names_find() - The first name of this file; @path itself when it is the first. NULL without
 * memory.
 */
const char *tar_names_find(struct tar_names *names, const struct stat *st, const char *path);

/*
 * tar_xattrs() - Attributes of the user's (user.*) as pax records. Return: their length.
 * @ret_cut: there are more than fit in @room
 */
size_t tar_xattrs(int fd, char *out, size_t room, bool *ret_cut);

#endif
