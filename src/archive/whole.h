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

/*
 * tar_first_name() - The first name of a file that has several; @path itself when it is the first.
 * @names: the files so far, by device and inode; begins as NULL
 * Return: NULL without memory.
 */
const char *tar_first_name(void **names, const struct stat *st, const char *path);

/*
 * tar_xattrs() - Attributes of the user (user.*) as pax records. Return: their length.
 * @ret_cut: there are more than fit in @room
 */
size_t tar_xattrs(int fd, char *out, size_t room, bool *ret_cut);

#endif
