/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path.h - The rule for names and links of an archive: nothing leads out of the tree.
 *
 * tar_path_check(), tar_path_tidy() and tar_link_inside() are pure functions over text.
 * tar_parent() walks the directories of a tidy path by descriptors. path.c argues why both together
 * keep a hostile archive inside.
 */
#ifndef CAISSON_ARCHIVE_PATH_H
#define CAISSON_ARCHIVE_PATH_H

#include <stdbool.h>
#include <stddef.h>

enum tar_path { TAR_PATH_OK, TAR_PATH_ABSOLUTE, TAR_PATH_UP, TAR_PATH_DEEP };

/*
 * tar_path_check() - Absolute, with a "..", or with more than @depth_max components? "" is the
 * root.
 */
enum tar_path tar_path_check(const char *path, size_t depth_max);

/*
 * tar_path_tidy() - In place: no leading, double or trailing slash, no ".". For paths that passed
 * the check.
 */
void tar_path_tidy(char *path);

/* tar_link_inside() - Whether a symbolic link at @path, which is tidy, may have @target. */
bool tar_link_inside(const char *path, const char *target);

/*
 * A function that opens the directory @name in @at without following a link, perhaps after it made
 * it.
 * @path, @len: the path of that directory from the root, which is not NUL-terminated at @len
 * Return: a descriptor or -errno.
 */
typedef int tar_enter(void *arg, int at, const char *name, const char *path, size_t len);

/* tar_enter_dir() - @arg: NULL, or the mode_t with which a missing directory is made. */
int tar_enter_dir(void *arg, int at, const char *name, const char *path, size_t len);

/*
 * tar_parent() - The directory below @root that holds @path, which is tidy, and its last component.
 * @ret_name: points into @path
 * Return: a descriptor of the caller's, or -errno.
 */
int tar_parent(int root, const char *path, tar_enter *enter, void *arg, const char **ret_name);

/*
 * tar_clear() - Unlink what has this name, unless it is a directory. 0 or -errno; a free name is 0.
 */
int tar_clear(int dir, const char *name);

#endif
